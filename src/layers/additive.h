/* SPDX-License-Identifier: MIT */
#ifndef RAPT_LAYERS_ADDITIVE_H
#define RAPT_LAYERS_ADDITIVE_H

#include "layers/call.h"

/* Passes scores that a layer computed, [batch][query_length][kv_length], to the
 * engine: as a bias on dot products that are zero, so that the engine does masks,
 * softmax and the sum over values. Refuses weights that would show these zeros. */
void rapt_attend_to_scores(struct rapt_call *call, rapt_attention_desc *all, const float *scores);

/* Refuses values wider than attention takes, by the caller's name of their width. */
void rapt_check_values(struct rapt_call *call, int64_t width, const char *name);

/* Refuses what a layer with one head and its own scores does not have. */
void rapt_check_single(struct rapt_call *call, const rapt_attention_desc *all);

#endif
