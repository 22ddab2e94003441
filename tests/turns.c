/* SPDX-License-Identifier: MIT
 * KV heads whose keys and values lie side by side, token by token, and take turns: the bits of the specification, and
 * which calls do it. */
#include <stdatomic.h>

#include "cmocka_all.h"
#include "cpu.h"
#include "dispatch.h"
#include "plan.h"
#include "problem.h"

static struct problem_call call_of(int64_t heads, int64_t group, int64_t queries, int64_t keys, unsigned use) {
    return (struct problem_call){.batch = 1 + keys % 2, .query_heads = heads * group, .kv_heads = heads,
                                 .query_length = queries, .kv_length = keys, .head_dim = 32, .value_dim = 32,
                                 .use = use | USE_LSE, .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
                                 .weights_kind = RAPT_WEIGHTS_SOFTMAX,
                                 .seed = (uint64_t)(keys + queries) + use};
}

/* On every table, with what kernels ask of each processor. Where two workers are left with few tasks, each of them
 * takes single heads. */
static void check(struct problem_call call) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(1, tables);
    static int requests;
    struct problem *expected = problem_expected(&call);
    for (int table = 0; table < count; table++)
        for (int threads = 1; threads <= 2; threads++) {
            const struct problem_way way = {.isa = tables[table]->isa, .threads = threads};
            const struct problem_layout layout = {.token_major = true, .poison = true};
            atomic_store(&rapt_requests_here, requests % (RAPT_REQUESTS_FAR_INTO_L1 + 1));
            atomic_store(&rapt_splits_vectors, requests++ % 2);
            problem_check(expected, &layout, &way);
        }
    problem_free(expected);
    test_free_all();
}

static void test_features(void **state) {
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_SOFTCAP, USE_STANDARD_ALIBI, USE_KEEP,
                                    USE_KV_LENGTHS | USE_KEY_POSITION, USE_INITIAL_STATE | USE_FINAL_STATE, USE_SINKS,
                                    USE_MASK, USE_BIAS, USE_BLOCKS, USE_TREE, USE_WEIGHTS};
    static const int64_t heads[] = {2, 4, 12};
    (void)state;
    for (int u = 0; u < (int)(sizeof uses / sizeof uses[0]); u++)
        for (int i = 0; i < 3; i++)
            if (is_sampled(u * 3 + i))
                check(call_of(heads[i], 1 + u % 3, 1 + i % 2, 300 + 411 * i, uses[u]));
}

/* So many that tasks have some of them, and merge. */
static void test_split_keys(void **state) {
    static const unsigned uses[] = {0, USE_CAUSAL, USE_KV_LENGTHS, USE_INITIAL_STATE | USE_FINAL_STATE, USE_KEEP};
    (void)state;
    for (int i = 0; i < 5; i++)
        if (is_sampled(i))
            check(call_of(2 + i % 3, 1 + i % 2, 1, 4200 + 1500 * i, uses[i]));
}

/* Excluded values that are NaN or infinite make one head careful, or all. */
static void test_data(void **state) {
    static const enum data_kind kinds[] = {DATA_NAN_ROWS, DATA_INFINITE, DATA_MINUS_INFINITE, DATA_LOUD, DATA_SPECIAL};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KV_LENGTHS};
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct problem_call call = call_of(3, 1, 3, 1100 + i, uses[i % 4]);
        call.data = kinds[i / 4];
        if (is_sampled(i))
            check(call);
    }
}

static void test_types(void **state) {
    static const int formats[] = {RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0, RAPT_FORMAT_Q4_0,
                                  RAPT_FORMAT_F8_E4M3, RAPT_FORMAT_F8_E5M2};
    (void)state;
    for (int i = 0; i < 18; i++) {
        struct problem_call call = call_of(2 + 2 * (i % 4), 1 + i / 6, 1, 700 + 97 * i, i % 2 ? USE_CAUSAL : 0);
        call.key_format = call.value_format = formats[i % 6];
        call.head_dim = call.value_dim = 64;
        if (is_sampled(i))
            check(call);
    }
}

enum { KEYS = 1000, DIM = 64 };

/* How many heads of a call take turns. Keys lie as values do, if nothing else is said. */
static int heads_of(rapt_attention_desc desc, int64_t heads, int32_t dtype) {
    rapt_plan plan;
    rapt_message message;
    desc.batch = 1;
    desc.query_heads = desc.kv_heads = heads;
    desc.query_length = desc.query_length ? desc.query_length : 1;
    desc.kv_length = desc.kv_length ? desc.kv_length : KEYS;
    desc.head_dim = DIM;
    desc.query = rapt_input_bhsd(NULL, 1, heads, desc.query_length, DIM);
    desc.value = rapt_tensor_bshd(NULL, dtype, 1, KEYS, heads, DIM);
    if (!desc.key.dtype)
        desc.key = desc.value;
    desc.out = rapt_output_bhsd(NULL, 1, heads, desc.query_length, DIM);
    if (rapt_plan_init(&plan, &desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
    return rapt_body_of(&plan)->each.heads;
}

/* Keys with so many bytes from head to head, and from token to token. */
static int heads_at(rapt_attention_desc desc, int64_t head_stride_bytes, int64_t token_stride_bytes) {
    desc.key = (rapt_tensor){.dtype = RAPT_F32, .head_stride_bytes = head_stride_bytes,
                             .token_stride_bytes = token_stride_bytes};
    return heads_of(desc, 4, RAPT_F32);
}

static void test_which(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    enum { ROW = DIM * sizeof(float) };
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT, many = desc, causal = desc, one_block = desc;
    (void)state;
    for (int i = tables_of(1, tables) - 1; i >= 0; i--) {
        const struct rapt_tile_kind *kind = &tables[i]->kinds[RAPT_NARROW];
        const bool can = kind->score_beside && kind->beside_rows[RAPT_FORMAT_F32] > 0;
        const bool can_halves = can && kind->beside_rows[RAPT_FORMAT_F16] > 0;
        const bool can_blocks = can && kind->beside_rows[RAPT_FORMAT_Q8_0] > 0;
        desc.isa = many.isa = causal.isa = one_block.isa = tables[i]->isa;
        many.query_length = 100;
        one_block.kv_length = 256;
        causal.features = RAPT_CAUSAL;
        causal.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
        print_message("# %s: heads take turns: %d\n", tables[i]->name, can);
        assert_int_equal(heads_of(desc, 4, RAPT_F32), can ? 4 : 1);
        assert_int_equal(heads_of(causal, 8, RAPT_F32), can ? 8 : 1);
        assert_int_equal(heads_of(desc, 12, RAPT_F16), can_halves ? 6 : 1);
        assert_int_equal(heads_of(desc, 16, RAPT_F32), can ? 8 : 1);
        assert_int_equal(heads_of(desc, 11, RAPT_F32), 1); /* no divisor */
        assert_int_equal(heads_of(desc, 8, RAPT_Q8_0), can_blocks ? 8 : 1);
        assert_int_equal(heads_of(desc, 16, RAPT_Q8_0), 1); /* rows of eight heads are no whole lines */
        assert_int_equal(heads_at(desc, ROW, 4 * ROW), can ? 4 : 1);
        assert_int_equal(heads_at(desc, ROW, 5 * ROW), can ? 4 : 1);
        assert_int_equal(heads_at(desc, ROW, 3 * ROW), can ? 2 : 1); /* as strides may be; two do not overlap */
        assert_int_equal(heads_at(desc, 2 * ROW, 8 * ROW), 1);
        assert_int_equal(heads_at(desc, KEYS * ROW, ROW), 1);
        assert_int_equal(heads_of(one_block, 4, RAPT_F32), 1);
        assert_int_equal(heads_of(many, 4, RAPT_F32), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features), cmocka_unit_test(test_split_keys), cmocka_unit_test(test_data),
        cmocka_unit_test(test_types),    cmocka_unit_test(test_which),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
