/* SPDX-License-Identifier: MIT
 * Random data for tests of layers. */
#ifndef RAPT_TESTS_LAYERS_DRAWN_H
#define RAPT_TESTS_LAYERS_DRAWN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rapt/layers.h"
#include "support/support.h"

enum { BATCH = 2, TOKENS = 5, WIDTH = 12, HEADS = 3, DIM = 4, HIDDEN = 20, COUNT = BATCH * TOKENS * WIDTH };

static struct random source = {11};
static rapt_message message;

static inline float *drawn(int64_t count) { return test_drawn(&source, count, random_uniform); }

static inline rapt_attention_desc sizes(int64_t heads) {
    rapt_attention_desc how = RAPT_ATTENTION_DESC_INIT;
    how.batch = BATCH;
    how.query_heads = how.kv_heads = heads;
    how.query_length = how.kv_length = TOKENS;
    return how;
}

static inline rapt_linear drawn_linear(int64_t in, int64_t out) {
    return rapt_linear_of(drawn(in * out), drawn(out), in, out);
}

/* The attention of all tests here: three projections and an output. */
static inline rapt_multi_head_desc make(const rapt_attention_desc *how) {
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = how;
    layer.query = drawn_linear(WIDTH, WIDTH);
    layer.key = drawn_linear(WIDTH, WIDTH);
    layer.value = drawn_linear(WIDTH, WIDTH);
    layer.output = drawn_linear(WIDTH, WIDTH);
    layer.x = drawn(COUNT);
    layer.out = test_floats(COUNT);
    return layer;
}

static inline void expect_ok(rapt_status status) {
    if (status != RAPT_OK) fail_msg("%s: %s", rapt_status_text(status), message.text);
}

#endif
