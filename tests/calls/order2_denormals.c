/* SPDX-License-Identifier: MIT
 * Order 2 of bfloat16: denormals count as zeros for any number of rows, even if nothing else is small. */
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/problem.h"

enum { HEAD_DIM = 32, VALUE_DIM = 2, MOST_ROWS = 30, MOST_KEYS = 3 };

/* Denormal, normal, denormal; the last key has both in one row. */
static const uint16_t values[MOST_KEYS][VALUE_DIM] = {{0x0053, 0x3f80}, {0x8054, 0}, {0x007f, 0x0080}};

static rapt_attention_desc call_of(const uint16_t *query, const uint16_t *key, int rows, int keys, float *out) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.numerics = RAPT_NUMERICS_ORDER_2;
    desc.batch = desc.kv_heads = desc.query_length = 1;
    desc.query_heads = rows;
    desc.kv_length = keys;
    desc.head_dim = HEAD_DIM;
    desc.value_dim = VALUE_DIM;
    desc.query = rapt_tensor_bhsd((void *)(uintptr_t)query, RAPT_BF16, 1, rows, 1, HEAD_DIM);
    desc.key = rapt_tensor_bhsd((void *)(uintptr_t)key, RAPT_BF16, 1, 1, keys, HEAD_DIM);
    desc.value = rapt_tensor_bhsd((void *)(uintptr_t)values, RAPT_BF16, 1, 1, keys, VALUE_DIM);
    desc.out = rapt_output_bhsd(out, 1, rows, 1, VALUE_DIM);
    return desc;
}

static void check(const struct rapt_table *table, const uint16_t *query, const uint16_t *key, int rows, int keys) {
    float out[MOST_ROWS * VALUE_DIM], expected[MOST_ROWS * VALUE_DIM];
    rapt_attention_desc desc = call_of(query, key, rows, keys, out);
    const rapt_attention_desc as_reference = call_of(query, key, rows, keys, expected);
    rapt_message message;
    desc.isa = table->isa;
    if (rapt_attention(&desc, NULL, &message) != RAPT_OK)
        fail_msg("%s: %s", table->name, message.text);
    rapt_reference_attention(&as_reference);
    expect_bits(out, expected, rows * VALUE_DIM, NAN_CANONICAL, "%s, %d rows, %d keys", table->name, rows, keys);
}

static void test_values_and_keys(void **state) {
    static uint16_t query[MOST_ROWS * HEAD_DIM], zeros[MOST_KEYS * HEAD_DIM], denormal[MOST_KEYS * HEAD_DIM];
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(2, tables);
    (void)state;
    for (int i = 0; i < MOST_ROWS * HEAD_DIM; i++)
        query[i] = 0x7f00; /* times a denormal nearly 1 */
    for (int i = 0; i < MOST_KEYS * HEAD_DIM; i++)
        denormal[i] = 0x0040;
    for (int t = 0; t < count; t++)
        for (int rows = 1; rows <= MOST_ROWS; rows++)
            for (int keys = 1; keys <= MOST_KEYS; keys++) {
                check(tables[t], query, zeros, rows, keys);
                check(tables[t], query, denormal, rows, keys);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values_and_keys)};
    return cmocka_run_group_tests_name("order2_denormals", tests, NULL, NULL);
}
