/* SPDX-License-Identifier: MIT */
#include "support/small.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct small small_new(int64_t queries, int64_t keys) {
    struct random random = {7};
    struct small s = {.queries = queries, .keys = keys};
    s.query = test_drawn(&random, BATCH * HEADS * queries * DIM, random_uniform);
    s.key = test_drawn(&random, BATCH * KV_HEADS * keys * DIM, random_uniform);
    s.value = test_drawn(&random, BATCH * KV_HEADS * keys * DIM, random_uniform);
    s.out = test_floats(BATCH * HEADS * queries * DIM);
    s.expected = test_floats(BATCH * HEADS * queries * DIM);
    s.lse = test_floats(BATCH * HEADS * queries);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = BATCH;
    desc.query_heads = HEADS;
    desc.kv_heads = KV_HEADS;
    desc.query_length = queries;
    desc.kv_length = keys;
    desc.head_dim = DIM;
    desc.query = rapt_input_bhsd(s.query, BATCH, HEADS, queries, DIM);
    desc.key = rapt_input_bhsd(s.key, BATCH, KV_HEADS, keys, DIM);
    desc.value = rapt_input_bhsd(s.value, BATCH, KV_HEADS, keys, DIM);
    desc.out = rapt_output_bhsd(s.out, BATCH, HEADS, queries, DIM);
    desc.lse = rapt_output_bhsd(s.lse, BATCH, HEADS, queries, 1);
    s.desc = desc;
    return s;
}

void small_run(struct small *s, rapt_isa isa) {
    rapt_message message = {{0}};
    s->desc.isa = isa;
    if (rapt_attention(&s->desc, NULL, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

float *small_row(float *rows, const struct small *s, int64_t b, int64_t h, int64_t i) {
    return rows + ((b * HEADS + h) * s->queries + i) * DIM;
}

bool row_is_zero(const float *x) {
    bool zero = true;
    for (int d = 0; d < DIM; d++)
        zero = zero && bits_of(x[d]) == 0;
    return zero;
}

bool row_is_nan(const float *x) {
    bool nan = true;
    for (int d = 0; d < DIM; d++)
        nan = nan && bits_of(x[d]) == 0x7fc00000u;
    return nan;
}

bool row_is_finite(const float *x) {
    bool finite = true;
    for (int d = 0; d < DIM; d++)
        finite = finite && isfinite(x[d]);
    return finite;
}

void small_expect_status(const struct small *s, rapt_status expected) {
    rapt_message message = {{0}};
    rapt_status status = rapt_attention(&s->desc, NULL, &message);
    if (status != expected)
        fail_msg("status %s instead of %s: %s", rapt_status_text(status), rapt_status_text(expected), message.text);
    assert_true(message.text[0] != 0);
    for (int64_t i = 0; i < BATCH * HEADS * s->queries * DIM; i++)
        assert_int_equal(bits_of(s->out[i]), 0xffffffffu);
}
