/* SPDX-License-Identifier: MIT */
#ifndef RAPT_LAYERS_MULTI_HEAD_H
#define RAPT_LAYERS_MULTI_HEAD_H

#include "layers/call.h"

/* Fills in head_dim and value_dim of all; refuses projections that do not fit
 * the numbers of heads or each other. */
void rapt_shape_heads(struct rapt_call *call, const rapt_multi_head_desc *desc, rapt_attention_desc *all);

struct rapt_projected {
    float *query, *key, *value, *fused; /* query, key and value, or fused */
};

struct rapt_heads {
    rapt_attention_desc all; /* complete, as the engine gets it */
    struct rapt_projected to;
    float *context;
};

/* rapt_multi_head_attention as two steps of another layer: all that it refuses
 * by itself, then all that it writes. */
void rapt_heads_begin(struct rapt_call *call, const rapt_multi_head_desc *desc, struct rapt_heads *heads);
void rapt_heads_run(struct rapt_call *call, const rapt_multi_head_desc *desc, const struct rapt_heads *heads);

#endif
