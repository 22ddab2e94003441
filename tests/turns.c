/* SPDX-License-Identifier: MIT
 * KV heads whose keys and values lie side by side, token by token, and take turns, and turns in pages: the bits of the
 * specification, and which calls do it. */
#include <stdatomic.h>

#include "cmocka_all.h"
#include "cpu.h"
#include "dispatch.h"
#include "plan.h"
#include "problem.h"
#include "turns.h"
#include "work.h"

static struct problem_call call_of(int64_t heads, int64_t group, int64_t queries, int64_t keys, unsigned use) {
    return (struct problem_call){.batch = 1 + keys % 2, .query_heads = heads * group, .kv_heads = heads,
                                 .query_length = queries, .kv_length = keys, .head_dim = 32, .value_dim = 32,
                                 .use = use | USE_LSE, .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
                                 .weights_kind = RAPT_WEIGHTS_SOFTMAX,
                                 .seed = (uint64_t)(keys + queries) + use};
}

/* Some pages are no whole turns; in others the heads follow each other, so that each is read by itself. */
static const struct problem_layout layouts[] = {
    {.token_major = true, .poison = true},
    {.token_major = true, .poison = true, .page_kind = RAPT_PAGES_DENSE, .page_tokens = 32},
    {.token_major = true, .poison = true, .page_kind = RAPT_PAGES_LISTED, .page_tokens = 16},
    {.token_major = true, .poison = true, .page_kind = RAPT_PAGES_DENSE, .page_tokens = 96},
    {.token_major = true, .poison = true, .page_kind = RAPT_PAGES_LISTED, .page_tokens = 40},
    {.poison = true, .page_kind = RAPT_PAGES_LISTED, .page_tokens = 32},
    {.poison = true, .page_kind = RAPT_PAGES_DENSE, .page_tokens = 16},
    {.poison = true, .page_kind = RAPT_PAGES_DENSE, .page_tokens = 128},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* On every table, with what kernels ask of each processor. Where two workers are left with few tasks, each of them
 * takes single heads. Tables without turns take each layout as they take the first. */
static void check_layouts(struct problem_call call, int layout_count) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(1, tables);
    static int requests;
    struct problem *expected = problem_expected(&call);
    for (int table = 0; table < count; table++)
        for (int i = 0; i < (tables[table]->kinds[RAPT_NARROW].score_beside ? 2 * layout_count : 1); i++) {
            const struct problem_way way = {.isa = tables[table]->isa, .threads = 1 + i % 2};
            atomic_store(&rapt_requests_here, requests % (RAPT_REQUESTS_FAR_INTO_L1 + 1));
            atomic_store(&rapt_splits_vectors, requests++ % 2);
            problem_check(expected, &layouts[i / 2], &way);
        }
    problem_free(expected);
    test_free_all();
}

static void check(struct problem_call call) { check_layouts(call, LAYOUTS); }

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
                                  RAPT_FORMAT_F8_E4M3, RAPT_FORMAT_F8_E5M2, RAPT_FORMAT_Q4_1, RAPT_FORMAT_Q5_0,
                                  RAPT_FORMAT_Q5_1, RAPT_FORMAT_IQ4_NL};
    (void)state;
    for (int i = 0; i < 30; i++) {
        struct problem_call call = call_of(2 + 2 * (i % 4), 1 + i / 10, 1, 700 + 97 * i, i % 2 ? USE_CAUSAL : 0);
        call.key_format = call.value_format = formats[i % 10];
        call.head_dim = call.value_dim = 64;
        if (is_sampled(i))
            check(call);
    }
}

/* As many rows as fill a vector where that is more than registers hold, and about as many, in whole lines of dims and
 * in others. */
static void test_rows_that_fill(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0,
                                  RAPT_FORMAT_Q4_0, RAPT_FORMAT_Q4_1, RAPT_FORMAT_IQ4_NL};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KEEP, USE_SOFTCAP, USE_MASK,
                                    USE_KV_LENGTHS};
    static const int64_t groups[] = {7, 8, 4, 9}, dims[] = {64, 128, 96, 288};
    (void)state;
    for (int i = 0; i < 40; i++) {
        const unsigned use = uses[(i + i / 7) % 7];
        struct problem_call call = call_of(1 + i % 3, groups[i % 4], i % 4 == 2 ? 2 : 1, 600 + 97 * i, use);
        call.key_format = call.value_format = formats[i % 7];
        call.head_dim = call.value_dim = dims[i / 7 % 4];
        if (is_sampled(i))
            check(call);
    }
}

/* More than narrow tiles take, whose heads take turns to score and weigh where caches do not have all of the rows. */
static void test_few_rows(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_F16, RAPT_FORMAT_Q8_0};
    static const int64_t keys[] = {1000, 1900, 3500};
    static const enum data_kind kinds[] = {DATA_NORMAL, DATA_NAN_ROWS, DATA_NORMAL, DATA_SPECIAL};
    static const unsigned uses[] = {0, USE_CAUSAL, USE_CAUSAL | USE_WINDOW, USE_KEEP, USE_STANDARD_ALIBI, USE_WEIGHTS,
                                    USE_KV_LENGTHS | USE_KEY_POSITION, USE_INITIAL_STATE | USE_FINAL_STATE};
    (void)state;
    for (int i = 0; i < 12; i++) {
        const int type = i % 3;
        struct problem_call call = call_of(8, 3 + i % 7, 3 + i % 3, keys[type] + 51 * (i / 3), uses[i % 8]);
        call.batch = 1;
        call.key_format = call.value_format = formats[type];
        call.head_dim = call.value_dim = 288 - (i % 2) * (type < 2) * 8;
        call.data = kinds[i / 3 % 4];
        if (is_sampled(i))
            check_layouts(call, 1);
    }
}

enum { KEYS = 1000, DIM = 64 };

/* Keys and values lie side by side, if nothing else is said. */
static void plan_of(rapt_plan *plan, rapt_attention_desc desc, int64_t heads, int32_t dtype) {
    rapt_message message;
    desc.batch = 1;
    desc.query_heads = desc.kv_heads = heads;
    desc.query_length = desc.query_length ? desc.query_length : 1;
    desc.kv_length = desc.kv_length ? desc.kv_length : KEYS;
    desc.head_dim = DIM;
    desc.query = rapt_input_bhsd(NULL, 1, heads, desc.query_length, DIM);
    desc.value = desc.value.dtype ? desc.value : rapt_tensor_bshd(NULL, dtype, 1, desc.kv_length, heads, DIM);
    desc.key = desc.key.dtype ? desc.key : desc.value;
    desc.out = rapt_output_bhsd(NULL, 1, heads, desc.query_length, DIM);
    if (rapt_plan_init(plan, &desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

/* Of its only sequence. */
static struct rapt_work work_of(const rapt_plan *plan) {
    const struct rapt_sequence sequence = rapt_sequence_of(&rapt_body_of(plan)->desc, 0);
    return rapt_work_cut(rapt_body_of(plan), &sequence);
}

/* How many heads of a call take turns. */
static int heads_of(rapt_attention_desc desc, int64_t heads, int32_t dtype) {
    rapt_plan plan;
    plan_of(&plan, desc, heads, dtype);
    return work_of(&plan).heads;
}

/* In pages, which tensors of one batch are like. */
static rapt_attention_desc in_pages(rapt_attention_desc desc, rapt_tensor page, int64_t page_tokens) {
    enum { PAGES = 1000 };
    static const int32_t entries[KEYS];
    page.page_stride_bytes = page.batch_stride_bytes;
    page.extent_bytes = PAGES * page.batch_stride_bytes;
    desc.key = desc.value = page;
    desc.key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE, .page_tokens = page_tokens, .pages = PAGES,
                                       .entries = rapt_int32_list(entries, 0)};
    desc.value_pages = desc.key_pages;
    return desc;
}

/* How many heads of token-major pages take turns. */
static int heads_in_pages(rapt_attention_desc desc, int64_t heads, int32_t dtype, int64_t page_tokens) {
    const rapt_tensor page = rapt_tensor_bshd(NULL, dtype, 1, page_tokens, heads, DIM);
    return heads_of(in_pages(desc, page, page_tokens), heads, dtype);
}

/* Whether keys and values of one head take turns in pages whose heads follow each other. */
static bool takes_turns_alone(rapt_attention_desc desc, int32_t dtype, int64_t page_tokens) {
    rapt_plan plan;
    plan_of(&plan, in_pages(desc, rapt_tensor_bhsd(NULL, dtype, 1, 4, page_tokens, DIM), page_tokens), 4, dtype);
    const struct rapt_work work = work_of(&plan);
    assert_int_equal(work.heads, 1);
    return rapt_takes_turns(rapt_body_of(&plan), &work, work.task_rows, 1);
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

/* Of tiles of few rows. */
static void test_which_few(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT, masked = desc;
    (void)state;
    masked.mask = (rapt_tensor){.dtype = RAPT_BOOL8};
    for (int i = tables_of(1, tables) - 1; i >= 0; i--) {
        const struct rapt_tile_kind *kind = &tables[i]->kinds[RAPT_FEW];
        const bool can = kind->slot_turn > 0;
        desc.isa = masked.isa = tables[i]->isa;
        desc.query_length = masked.query_length = kind->most_rows - 2;
        print_message("# %s: heads of %d rows take turns: %d\n", tables[i]->name, (int)desc.query_length, can);
        if (desc.query_length <= tables[i]->kinds[RAPT_NARROW].turn_rows)
            continue;
        desc.kv_length = masked.kv_length = KEYS;
        assert_int_equal(heads_of(desc, 4, RAPT_F32), 1); /* caches have all */
        desc.kv_length = masked.kv_length = 64 * KEYS;
        assert_int_equal(heads_of(desc, 4, RAPT_F32), can ? 4 : 1);
        assert_int_equal(heads_of(desc, 12, RAPT_F16), can ? 4 : 1); /* a power of two */
        assert_int_equal(heads_of(desc, 8, RAPT_Q8_0), can ? 8 : 1);
        assert_int_equal(heads_of(desc, 3, RAPT_F32), 1);
        assert_int_equal(heads_of(desc, 4, RAPT_F8_E4M3), 1); /* widened first */
        assert_int_equal(heads_of(masked, 4, RAPT_F32), 1);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, 64), 1);
    }
}

static void test_which_pages(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT, shifted = desc, aligned = desc;
    static const int32_t within_turn = 8, whole_turns = 64;
    (void)state;
    for (int i = tables_of(1, tables) - 1; i >= 0; i--) {
        const struct rapt_tile_kind *kind = &tables[i]->kinds[RAPT_NARROW];
        const bool can = kind->score_beside && kind->beside_rows[RAPT_FORMAT_F32] > 0, alone = can && kind->turns_alone;
        const bool can_blocks = can && kind->beside_rows[RAPT_FORMAT_Q8_0] > 0;
        const int turn = kind->score_beside ? kind->turn_keys : 32;
        desc.isa = shifted.isa = aligned.isa = tables[i]->isa;
        shifted.key_position = rapt_int32_list(&within_turn, 1);
        aligned.key_position = rapt_int32_list(&whole_turns, 1);
        print_message("# %s: in pages of %d tokens: %d, alone: %d\n", tables[i]->name, turn, can, alone);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, turn), can ? 4 : 1);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, 3 * turn), can ? 4 : 1);
        assert_int_equal(heads_in_pages(desc, 8, RAPT_Q8_0, turn), can_blocks ? 8 : 1);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, turn + 8), 1);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, 1), 1);
        assert_int_equal(heads_in_pages(aligned, 4, RAPT_F32, turn), can ? 4 : 1);
        assert_int_equal(heads_in_pages(shifted, 4, RAPT_F32, turn), 1); /* pages begin within turns */
        assert_int_equal(takes_turns_alone(desc, RAPT_F32, turn), alone);
        assert_int_equal(takes_turns_alone(desc, RAPT_Q8_0, 4 * turn), can_blocks && kind->turns_alone);
        assert_int_equal(takes_turns_alone(desc, RAPT_F32, turn / 2), false);
    }
}

/* The kind of tile that a group of so many query heads gets. */
static int kind_of_group(rapt_attention_desc desc, int64_t group, int32_t dtype) {
    rapt_plan plan;
    desc.batch = desc.kv_heads = 1;
    desc.query_heads = group;
    desc.query_length = 1;
    desc.kv_length = desc.kv_length ? desc.kv_length : KEYS;
    desc.head_dim = DIM;
    desc.query = rapt_input_bhsd(NULL, 1, group, 1, DIM);
    desc.key = desc.value = rapt_tensor_bhsd(NULL, dtype, 1, 1, KEYS, DIM);
    desc.out = rapt_output_bhsd(NULL, 1, group, 1, DIM);
    if (rapt_plan_init(&plan, &desc, NULL) != RAPT_OK)
        fail_msg("a group of %d is refused", (int)group);
    return work_of(&plan).kind;
}

static void test_which_rows(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT, masked = desc, few_keys = desc;
    (void)state;
    masked.mask = (rapt_tensor){.dtype = RAPT_BOOL8};
    few_keys.kv_length = RAPT_BLOCK_KEYS - 1;
    for (int i = tables_of(1, tables) - 1; i >= 0; i--) {
        const struct rapt_tile_kind *kind = &tables[i]->kinds[RAPT_NARROW];
        const int most = kind->turn_rows, in_turns = most > kind->most_rows ? RAPT_NARROW : RAPT_FEW;
        desc.isa = masked.isa = few_keys.isa = tables[i]->isa;
        print_message("# %s: narrow tiles have %d rows, in turns %d\n", tables[i]->name, kind->most_rows, most);
        assert_int_equal(kind_of_group(desc, kind->most_rows, RAPT_F32), RAPT_NARROW);
        if (most < 2)
            continue;
        for (int rows = kind->most_rows + 1; rows <= most; rows++)
            assert_int_equal(kind_of_group(desc, rows, RAPT_F32), in_turns);
        assert_true(kind_of_group(desc, most + 1, RAPT_F32) > RAPT_NARROW);
        assert_int_equal(kind_of_group(desc, most, RAPT_BF16) == RAPT_NARROW,
                         most <= kind->beside_rows[RAPT_FORMAT_BF16] || most <= kind->most_rows);
        if (in_turns == RAPT_NARROW) {
            assert_int_equal(kind_of_group(masked, most, RAPT_F32), RAPT_FEW);
            assert_int_equal(kind_of_group(few_keys, most, RAPT_F32), RAPT_WIDE);
            assert_int_equal(kind_of_group(desc, most, RAPT_Q5_0), RAPT_FEW); /* turns of so many rows do not pay */
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),       cmocka_unit_test(test_split_keys), cmocka_unit_test(test_data),
        cmocka_unit_test(test_types),          cmocka_unit_test(test_which),      cmocka_unit_test(test_which_pages),
        cmocka_unit_test(test_rows_that_fill), cmocka_unit_test(test_which_rows), cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_which_few),
    };
    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
