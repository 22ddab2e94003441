/* SPDX-License-Identifier: MIT
 * float16 keys and values give the bits that float32 ones of the same numbers give. */
#include <string.h>

#include "cmocka_all.h"
#include "problem.h"

/* Every finite half is a float. */
static float widen(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31)
        return float_of(sign | 0x7f800000u | fraction << 13);
    const float magnitude = exponent ? (float)(1024 + fraction) * float_of((exponent + 102) << 23)
                                     : (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

struct halves {
    uint16_t *half;
    float *wide;
};

/* Mostly numbers near 1; some denormal, some zeros; and, if asked for, infinities and NaN. */
static struct halves draw(struct random *random, int64_t count, bool special) {
    struct halves drawn = {test_alloc((size_t)count * 2), test_floats(count)};
    for (int64_t i = 0; i < count; i++) {
        const uint16_t sign = (uint16_t)(random_bits(random) & 0x8000), fraction = random_bits(random) & 1023;
        uint16_t exponent = (uint16_t)random_between(random, 10, 15);
        if (random_chance(random, 3))
            exponent = 0;
        if (special && random_chance(random, 1))
            exponent = 31;
        drawn.half[i] = sign | (uint16_t)(exponent << 10) | fraction;
        drawn.wide[i] = widen(drawn.half[i]);
    }
    return drawn;
}

enum { TOKENS_LAST, TOKENS_FIRST, PADDED, LAYOUTS };

static rapt_tensor lay_out(const void *data, int32_t dtype, int layout, int64_t batch, int64_t heads, int64_t tokens,
                           int64_t dim) {
    rapt_tensor tensor = layout == TOKENS_FIRST ? rapt_tensor_bshd(data, dtype, batch, tokens, heads, dim)
                                                : rapt_tensor_bhsd(data, dtype, batch, heads, tokens, dim);
    if (layout == PADDED) { /* reversed, with room for one more element in each row */
        const int64_t bytes = dtype == RAPT_F16 ? 2 : 4;
        tensor = rapt_tensor_bhsd(data, dtype, batch, heads, tokens, dim + 1);
        tensor.data = (char *)tensor.data + (tokens - 1) * (dim + 1) * bytes;
        tensor.token_stride_bytes = -tensor.token_stride_bytes;
        tensor.extent_bytes = 0;
    }
    return tensor;
}

/* Bits of a mixed pair: key float16, value float32, and the other way round. */
static void check(const struct problem_call *call, const struct rapt_table *table, int layout, bool special) {
        struct random random = {call->seed};
    const int64_t rows = call->batch * call->kv_heads * call->kv_length;
    struct halves key = draw(&random, rows * (call->head_dim + 1), special);
    struct halves value = draw(&random, rows * (call->value_dim + 1), special);
    struct problem *wide = problem_new(call);
    const int64_t b = call->batch, h = call->kv_heads, t = call->kv_length;
    wide->desc.key = lay_out(key.wide, RAPT_F32, layout, b, h, t, call->head_dim);
    wide->desc.value = lay_out(value.wide, RAPT_F32, layout, b, h, t, call->value_dim);
    const struct problem_way way = {.isa = table->isa, .threads = 1};
    problem_run(wide, &way);
    for (int formats = 1; formats < 4; formats++) {
        struct problem *half = problem_new(call);
        half->desc.key = formats & 1 ? lay_out(key.half, RAPT_F16, layout, b, h, t, call->head_dim) : wide->desc.key;
        half->desc.value =
            formats & 2 ? lay_out(value.half, RAPT_F16, layout, b, h, t, call->value_dim) : wide->desc.value;
        problem_run(half, &way);
        if (!problem_same(half, wide) || !problem_is_clean(half))
            fail_msg("%s, formats %d, layout %d: %s", table->name, formats, layout, problem_text(call));
        problem_free(half);
    }
    problem_free(wide);
    test_free_all();
}

static void test_bits(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    (void)state;
    for (int64_t i = 0; i < scaled_work(150); i++) {
        const struct problem_call call = random_call((uint64_t)i + 1, 1000000);
        for (int table = 0; table < count; table++)
            check(&call, tables[table], (int)(i % LAYOUTS), i % 5 == 0);
    }
}

/* Few rows against many keys, in two phases. */
static void test_split_keys(void **state) {
    static const struct problem_call call = {
        1, 4, 1, 1, 6000, 64, 48, USE_LSE | USE_WEIGHTS | USE_CAUSAL, DATA_NORMAL, RAPT_ORIGIN_BOTTOM_RIGHT,
        RAPT_WEIGHTS_SOFTMAX, 3, 0};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = machine_tables(tables);
    (void)state;
    for (int table = 0; table < count; table++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            check(&call, tables[table], layout, layout == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_split_keys)};
    return cmocka_run_group_tests_name("float16", tests, NULL, NULL);
}
