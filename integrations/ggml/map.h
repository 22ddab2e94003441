/* SPDX-License-Identifier: MIT
 * What ggml asks for, in rapt's terms. */
#ifndef RAPT_GGML_MAP_H
#define RAPT_GGML_MAP_H

#include <rapt/rapt.h>
#include <stdbool.h>

#include "ggml.h"

enum { RAPT_GGML_MOST_HEADS = 1024 };

/* One node FLASH_ATTN_EXT without its data. All bytes are defined, so two calls are compared with memcmp. */
struct rapt_ggml_call {
    rapt_attention_desc desc; /* its head lists are NULL; rapt_ggml_complete sets them */
    float max_bias;           /* > 0: ALiBi, the mask holds distances */
    int32_t has_sinks;
};

/* False where the node is nothing that rapt takes; message says why, and may be NULL. */
bool rapt_ggml_describe(struct rapt_ggml_call *call, const struct ggml_tensor *node, rapt_message *message);

/* A descriptor to plan with. slopes has RAPT_GGML_MOST_HEADS elements, which the plan then points to. */
rapt_attention_desc rapt_ggml_complete(const struct rapt_ggml_call *call, float *slopes);

/* The memory of a node that rapt_ggml_describe took. False where a tensor lies outside of its buffer. */
bool rapt_ggml_bindings(rapt_bindings *bindings, const struct ggml_tensor *node, const float *slopes,
                        rapt_message *message);

#endif
