/* SPDX-License-Identifier: MIT */
#ifndef RAPT_LAYERS_ADDITIVE_H
#define RAPT_LAYERS_ADDITIVE_H

#include "layers/call.h"

/* Lets scores that a layer has computed, [batch][query_length][kv_length],
 * enter the engine: as a bias on dot products that are zero, so that masks,
 * softmax and the sum over values stay the engine's. Refuses weights that would
 * show these zeros. */
void rapt_attend_to_scores(struct rapt_call *call, rapt_attention_desc *all, const float *scores);

/* Refuses what a layer with one head and scores of its own does not have. */
void rapt_check_single(struct rapt_call *call, const rapt_attention_desc *all);

#endif
