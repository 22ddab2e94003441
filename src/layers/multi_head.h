/* SPDX-License-Identifier: MIT */
#ifndef RAPT_LAYERS_MULTI_HEAD_H
#define RAPT_LAYERS_MULTI_HEAD_H

#include "layers/call.h"

/* Fills in head_dim and value_dim of all; refuses projections that do not fit
 * the numbers of heads or each other. */
void rapt_shape_heads(struct rapt_call *call, const rapt_multi_head_desc *desc, rapt_attention_desc *all);

/* rapt_multi_head_attention as a step of another layer. */
void rapt_multi_head(struct rapt_call *call, const rapt_multi_head_desc *desc);

#endif
