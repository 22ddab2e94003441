/* SPDX-License-Identifier: MIT
 * Which calls read keys and values in turns, of which heads, and how many rows their tiles have. */
#include <stdatomic.h>

#include "cpu.h"
#include "dispatch.h"
#include "plan/plan.h"
#include "plan/turns.h"
#include "plan/work.h"
#include "support/cmocka_all.h"
#include "support/problem.h"

enum { KEYS = 1000, DIM = 64 };

/* Keys and values lie side by side, unless set. */
static void plan_of(rapt_plan *plan, rapt_attention_desc desc, int64_t heads, int32_t dtype) {
    rapt_message message;
    desc.batch = 1;
    desc.query_heads = desc.kv_heads = heads;
    desc.query_length = desc.query_length ? desc.query_length : 1;
    desc.kv_length = desc.kv_length ? desc.kv_length : KEYS;
    desc.head_dim = desc.head_dim ? desc.head_dim : DIM;
    desc.query = rapt_tensor_bhsd(NULL, desc.numerics == RAPT_NUMERICS_ORDER_2 ? dtype : RAPT_F32, 1, heads,
                                  desc.query_length, desc.head_dim);
    desc.value = desc.value.dtype ? desc.value : rapt_tensor_bshd(NULL, dtype, 1, desc.kv_length, heads, desc.head_dim);
    desc.key = desc.key.dtype ? desc.key : desc.value;
    desc.out = rapt_output_bhsd(NULL, 1, heads, desc.query_length, desc.head_dim);
    if (rapt_plan_init(plan, &desc, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

/* For its only sequence. */
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

/* In pages, each like a tensor of one batch. */
static rapt_attention_desc in_pages(rapt_attention_desc desc, rapt_tensor page, int64_t page_tokens) {
    enum { PAGES = 1000 };
    static const int32_t entries[4 * KEYS]; /* page 0 repeatedly */
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

/* Whether one head's keys and values, for so many rows, take turns in head-major pages. */
static bool takes_turns_alone(rapt_attention_desc desc, int rows, int32_t dtype, int64_t page_tokens) {
    rapt_plan plan;
    const int64_t dim = desc.head_dim ? desc.head_dim : DIM;
    desc.query_length = rows;
    plan_of(&plan, in_pages(desc, rapt_tensor_bhsd(NULL, dtype, 1, 4, page_tokens, dim), page_tokens), 4, dtype);
    const struct rapt_work work = work_of(&plan);
    assert_int_equal(work.heads, 1);
    return rapt_takes_turns(rapt_body_of(&plan), &work, work.task_rows, 1);
}

/* Keys with these head and token strides. */
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
        assert_int_equal(heads_at(desc, ROW, 3 * ROW), can ? 2 : 1); /* strides may overlap; two heads do not */
        assert_int_equal(heads_at(desc, 2 * ROW, 8 * ROW), 1);
        assert_int_equal(heads_at(desc, KEYS * ROW, ROW), 1);
        assert_int_equal(heads_of(one_block, 4, RAPT_F32), 1);
        assert_int_equal(heads_of(many, 4, RAPT_F32), 1);
    }
}

/* For tiles of few rows. */
static void test_which_few(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT, masked = desc;
    (void)state;
    masked.mask = (rapt_tensor){.dtype = RAPT_BOOL8};
    for (int i = tables_of(1, tables) - 1; i >= 0; i--) {
        const struct rapt_tile_kind *kind = &tables[i]->kinds[RAPT_FEW];
        const bool can = kind->step_turn_keys > 0;
        desc.isa = masked.isa = tables[i]->isa;
        desc.query_length = masked.query_length = kind->most_rows - 2;
        print_message("# %s: heads of %d rows take turns: %d\n", tables[i]->name, (int)desc.query_length, can);
        if (desc.query_length <= tables[i]->kinds[RAPT_NARROW].turn_rows)
            continue;
        desc.kv_length = masked.kv_length = KEYS;
        assert_int_equal(heads_of(desc, 4, RAPT_F32), 1); /* caches hold all */
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

/* Whether the tiles of a call take turns of whole blocks. */
static bool blocks_take_turns(rapt_attention_desc desc, int64_t heads, int32_t dtype) {
    rapt_plan plan;
    plan_of(&plan, desc, heads, dtype);
    return rapt_body_of(&plan)->table->kinds[work_of(&plan).kind].block_turn_rows;
}

/* In whole blocks, in order 2: on all but scalars. */
static void test_which_order_2(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT, masked = desc;
    (void)state;
    masked.mask = (rapt_tensor){.dtype = RAPT_BOOL8};
    desc.numerics = masked.numerics = RAPT_NUMERICS_ORDER_2;
    for (int i = tables_of(RAPT_NUMERICS_ORDER_2, tables) - 1; i >= 0; i--) {
        const int isa = tables[i]->isa;
        desc.isa = masked.isa = isa;
        desc.kv_length = KEYS;
        const bool can = blocks_take_turns(desc, 4, RAPT_BF16), of_half = blocks_take_turns(desc, 4, RAPT_F16);
        print_message("# %s: heads take turns in order 2: %d, of float16 %d\n", tables[i]->name, can, of_half);
        assert_true(can == (isa != RAPT_ISA_SCALAR) && of_half == can);
        assert_int_equal(heads_of(desc, 4, RAPT_BF16), 1); /* caches hold all */
        desc.kv_length = masked.kv_length = 64 * KEYS;
        assert_int_equal(heads_of(desc, 4, RAPT_BF16), can ? 4 : 1);
        assert_int_equal(heads_of(desc, 12, RAPT_F16), of_half ? 6 : 1);
        assert_int_equal(heads_of(desc, 3, RAPT_BF16), can ? 3 : 1);
        assert_int_equal(heads_of(masked, 4, RAPT_BF16), 1);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_BF16, 64), can ? 4 : 1);
        for (int rows = 16; isa == RAPT_ISA_AMX && rows <= 17; rows++) { /* for one tile of the unit, or two */
            rapt_attention_desc more = desc;
            more.query_length = rows;
            assert_int_equal(heads_of(more, 4, RAPT_BF16), rows == 16 ? 4 : 1);
        }
    }
}

static void test_which_pages(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT, shifted = desc, aligned = desc, wide = desc, longer = desc;
    static const int32_t within_turn = 8, whole_turns = 48;
    const int requests = atomic_load(&rapt_requests_here);
    (void)state;
    for (int i = tables_of(1, tables) - 1; i >= 0; i--) {
        const struct rapt_tile_kind *kind = &tables[i]->kinds[RAPT_NARROW];
        const bool can = kind->score_beside && kind->beside_rows[RAPT_FORMAT_F32] > 0;
        const bool alone = can && kind->beside_single_head;
        const bool can_blocks = can && kind->beside_rows[RAPT_FORMAT_Q8_0] > 0;
        const bool can_halves = can && kind->beside_rows[RAPT_FORMAT_F16] > 0;
        const bool alone_in_halves = can_halves && kind->beside_single_head;
        const int turn = kind->score_beside ? kind->turn_keys : 32, most = kind->beside_rows[RAPT_FORMAT_F32];
        atomic_store(&rapt_requests_here, RAPT_REQUESTS_FAR_INTO_L2);
        desc.isa = shifted.isa = aligned.isa = longer.isa = tables[i]->isa;
        longer.kv_length = 64 * KEYS;
        shifted.key_position = rapt_int32_list(&within_turn, 1);
        aligned.key_position = rapt_int32_list(&whole_turns, 1);
        print_message("# %s: in pages of %d tokens: %d, alone: %d\n", tables[i]->name, turn, can, alone);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, turn), can ? 4 : 1);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, 3 * turn), can ? 4 : 1);
        assert_int_equal(heads_in_pages(desc, 8, RAPT_Q8_0, turn), can_blocks ? 8 : 1);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, turn + 8), 1);
        assert_int_equal(heads_in_pages(desc, 4, RAPT_F32, 1), 1);
        assert_int_equal(heads_in_pages(aligned, 4, RAPT_F32, turn), can ? 4 : 1);
        assert_int_equal(heads_in_pages(shifted, 4, RAPT_F32, turn), 1); /* pages begin mid-turn */
        assert_int_equal(takes_turns_alone(desc, 3, RAPT_F32, turn), can); /* in caches */
        assert_int_equal(takes_turns_alone(longer, 6, RAPT_F32, turn), alone && most >= 6);
        assert_int_equal(takes_turns_alone(longer, 7, RAPT_F32, turn), most >= 7);
        assert_int_equal(takes_turns_alone(longer, 1, RAPT_F16, turn), can_halves);
        assert_int_equal(takes_turns_alone(desc, 3, RAPT_Q8_0, 4 * turn), can_blocks);
        assert_int_equal(takes_turns_alone(desc, 3, RAPT_F32, turn / 2), false);
        atomic_store(&rapt_requests_here, RAPT_REQUESTS_FAR_INTO_L1);
        assert_int_equal(takes_turns_alone(desc, 3, RAPT_F16, turn), can_halves);
        assert_int_equal(takes_turns_alone(desc, 2, RAPT_F16, turn), alone_in_halves);
        assert_int_equal(takes_turns_alone(desc, 3, RAPT_F32, turn), alone);
        wide.isa = longer.isa = tables[i]->isa;
        wide.head_dim = 224;
        assert_int_equal(takes_turns_alone(wide, 3, RAPT_F16, turn), can_halves);
        wide.head_dim = 256;
        assert_int_equal(takes_turns_alone(wide, 3, RAPT_F16, turn), alone_in_halves);
        atomic_store(&rapt_requests_here, RAPT_REQUESTS_L1_AT_HAND);
        assert_int_equal(takes_turns_alone(desc, 1, RAPT_F32, turn), can);
        assert_int_equal(takes_turns_alone(longer, 2, RAPT_BF16, 16), can_halves);
        assert_int_equal(takes_turns_alone(longer, 1, RAPT_F16, 32), can_halves);
        assert_int_equal(takes_turns_alone(longer, 1, RAPT_F16, 16), alone_in_halves);
        assert_int_equal(takes_turns_alone(longer, 3, RAPT_Q8_0, 32), can_blocks && kind->beside_single_head);
        assert_int_equal(takes_turns_alone(desc, 3, RAPT_F16, turn), alone_in_halves); /* in caches */
    }
    atomic_store(&rapt_requests_here, requests);
}

/* The kind of tile for a group of so many query heads. */
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

/* Order 2: as many rows as a tile of few rows has are such a tile, though they fill a wide one, too, which would pack
 * keys and values for it alone. */
static void test_which_rows_of_order_2(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    rapt_plan plan;
    (void)state;
    desc.numerics = RAPT_NUMERICS_ORDER_2;
    for (int i = tables_of(RAPT_NUMERICS_ORDER_2, tables) - 1; i >= 0; i--) {
        desc.isa = tables[i]->isa;
        desc.query_length = 1;
        plan_of(&plan, desc, 1, RAPT_BF16);
        const int few = rapt_body_of(&plan)->table->kinds[RAPT_FEW].most_rows;
        print_message("# %s: tiles of few rows have %d in order 2\n", tables[i]->name, few);
        desc.query_length = few;
        plan_of(&plan, desc, 1, RAPT_BF16);
        assert_int_equal(work_of(&plan).kind, RAPT_FEW);
        desc.query_length = few + 1;
        plan_of(&plan, desc, 1, RAPT_BF16);
        assert_int_equal(work_of(&plan).kind, RAPT_WIDE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which),
        cmocka_unit_test(test_which_few),
        cmocka_unit_test(test_which_order_2),
        cmocka_unit_test(test_which_pages),
        cmocka_unit_test(test_which_rows),
        cmocka_unit_test(test_which_rows_of_order_2),
    };
    return cmocka_run_group_tests_name("turns_which", tests, NULL, NULL);
}
