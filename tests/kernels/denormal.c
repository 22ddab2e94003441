/* SPDX-License-Identifier: MIT
 * Denormal products of orders 2 and 3 count as 0 on every instruction set. */
#include <string.h>

#include "isa.h"
#include "support/cmocka_all.h"

/* Order 3 flushes denormal products, also with small probabilities: 2^-100 of 2^-40 is 0. */
static void test_float32(void **state) {
    const float query = 1, key[2] = {0, -69.314718f}, value[2] = {0, 0x1p-40f};
    (void)state;
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++) {
        rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
        float out = 1;
        desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = desc.head_dim = 1;
        desc.kv_length = 2;
        desc.numerics = RAPT_NUMERICS_ORDER_3;
        desc.isa = isa;
        desc.query = rapt_input_bhsd(&query, 1, 1, 1, 1);
        desc.key = rapt_input_bhsd(key, 1, 1, 2, 1);
        desc.value = rapt_input_bhsd(value, 1, 1, 2, 1);
        desc.out = rapt_output_bhsd(&out, 1, 1, 1, 1);
        if (!rapt_isa_available((rapt_isa)isa))
            continue;
        assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
        assert_true(!(out < 0 || out > 0));
        desc.numerics = RAPT_NUMERICS_ORDER_1;
        assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
        assert_true(out > 0);
    }
}

static uint16_t bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* The same in order 2, by queries x keys and probabilities x values, for few and many rows. */
static void check_bfloat16(rapt_isa isa, int64_t queries, const float *query, const float *key,
                                const float *value, float *out, float *weights) {
    enum { MOST = 16 };
    uint16_t stored[MOST + 4];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    for (int64_t i = 0; i < queries; i++)
        stored[4 + i] = bf16(*query);
    for (int k = 0; k < 2; k++)
        stored[k] = bf16(key[k]), stored[2 + k] = bf16(value[k]);
    desc.batch = desc.query_heads = desc.kv_heads = desc.head_dim = 1;
    desc.query_length = queries;
    desc.kv_length = 2;
    desc.numerics = RAPT_NUMERICS_ORDER_2;
    desc.isa = (int32_t)isa;
    desc.query = rapt_tensor_bhsd(stored + 4, RAPT_BF16, 1, 1, queries, 1);
    desc.key = rapt_tensor_bhsd(stored, RAPT_BF16, 1, 1, 2, 1);
    desc.value = rapt_tensor_bhsd(stored + 2, RAPT_BF16, 1, 1, 2, 1);
    desc.out = rapt_output_bhsd(out, 1, 1, queries, 1);
    desc.weights = rapt_output_bhsd(weights, 1, 1, queries, 2);
    desc.weights_kind = RAPT_WEIGHTS_RAW;
    assert_int_equal(rapt_attention(&desc, NULL, NULL), RAPT_OK);
}

static void test_bfloat16(void **state) {
    const float one = 1, tiny = 0x1p-100f, near[2] = {0, -20.75f}, small[2] = {0x1p-40f, 0x1p-26f};
    const float values[2] = {0, 0x1p-100f};
    float out[16], weights[32];
    (void)state;
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++)
        for (int64_t queries = 1; rapt_isa_available((rapt_isa)isa) && queries <= 16; queries += 15) {
            check_bfloat16((rapt_isa)isa, queries, &one, near, values, out, weights);
            assert_false(out[queries - 1] < 0 || out[queries - 1] > 0);
            check_bfloat16((rapt_isa)isa, queries, &tiny, small, values, out, weights);
            assert_false(weights[0] < 0 || weights[0] > 0);
            assert_true(weights[1] >= 0x1p-126f && weights[1] <= 0x1p-126f);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_float32), cmocka_unit_test(test_bfloat16)};
    return cmocka_run_group_tests_name("denormal", tests, NULL, NULL);
}
