/* SPDX-License-Identifier: MIT
 * ggml's requests in rapt's terms. */
#ifndef RAPT_GGML_MAP_H
#define RAPT_GGML_MAP_H

#include <rapt/rapt.h>
#include <stdbool.h>

#include "ggml.h"

enum { RAPT_GGML_MOST_HEADS = 1024 };

/* A FLASH_ATTN_EXT node without its data. All bytes are defined, so that memcmp compares calls. */
struct rapt_ggml_call {
    rapt_attention_desc desc; /* its head lists are NULL; rapt_ggml_complete sets them */
    float max_bias;           /* > 0: ALiBi, the mask holds distances */
    int32_t has_sinks;
};

/* False if rapt does not support the node; message says why, and may be NULL. */
bool rapt_ggml_describe(struct rapt_ggml_call *call, const struct ggml_tensor *node, rapt_message *message);

/* A descriptor to plan with. slopes has RAPT_GGML_MOST_HEADS elements, which the plan then references. */
rapt_attention_desc rapt_ggml_complete(const struct rapt_ggml_call *call, float *slopes);

/* The memory of a described node. False if a tensor exceeds its buffer. */
bool rapt_ggml_bindings(rapt_bindings *bindings, const struct ggml_tensor *node, const float *slopes,
                        rapt_message *message);

#endif
