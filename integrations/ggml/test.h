/* SPDX-License-Identifier: MIT
 * A FLASH_ATTN_EXT node with numbers, for tests of the backend. */
#ifndef RAPT_GGML_TEST_H
#define RAPT_GGML_TEST_H

#include <stdbool.h>
#include <stdint.h>

#include "ggml-backend.h"

struct shape {
    int64_t dim, value_dim, heads, kv_heads, queries, keys, batch;
    enum ggml_type key_type, value_type;
    bool mask, sinks;
    float max_bias, softcap;
};

struct node {
    struct ggml_context *context;
    struct ggml_cgraph *graph;
    struct ggml_tensor *q, *k, *v, *mask, *sinks, *out;
    ggml_backend_buffer_t buffer; /* NULL until filled */
};

/* Without memory, so that tests may change fields. */
struct node make_node(const struct shape *shape);
/* Adds memory and numbers, the same for equal shapes. */
void fill_node(struct node *node);
void free_node(struct node *node);

extern ggml_backend_dev_t rapt_device, cpu_device;
ggml_backend_t make_backend(ggml_backend_dev_t device, int threads);
void *function_of(ggml_backend_dev_t device, const char *name);

/* The tests of the other file. */
void test_hostile(void **state);
void test_memory(void **state);

#endif
