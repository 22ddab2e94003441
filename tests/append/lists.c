/* SPDX-License-Identifier: MIT
 * Where tokens go: the last of two in one place remains; lists that change between their checks and uses. */
#include "append/draw.h"
#include "support/cmocka_all.h"

/* Tokens 0 ... count - 1 hold their index. */
static void test_last_remains(void **state) {
    enum { COUNT = 3000, SLOTS = 48, DIM = 32 };
    static float from[COUNT * DIM], into[SLOTS * DIM];
    static int64_t slots[COUNT];
    struct random random = {11};
    int64_t last[SLOTS];
    (void)state;
    for (int i = 0; i < SLOTS; i++)
        last[i] = -1;
    for (int i = 0; i < COUNT; i++) {
        slots[i] = random_below(&random, SLOTS + 3) - 3;
        if (slots[i] >= 0)
            last[slots[i]] = i;
        for (int d = 0; d < DIM; d++)
            from[i * DIM + d] = (float)i;
    }
    rapt_append_desc d = RAPT_APPEND_DESC_INIT;
    d.batch = 1, d.kv_heads = 1, d.length = COUNT, d.head_dim = DIM;
    d.pages.page_tokens = 16, d.pages.pages = SLOTS / 16;
    d.slots = rapt_int64_list(slots, COUNT);
    d.key = rapt_input_bshd(from, 1, COUNT, 1, DIM);
    d.key_cache = rapt_output_bshd(into, 1, SLOTS, 1, DIM);
    d.key_cache.page_stride_bytes = 16 * DIM * 4;
    for (int threads = 1; threads <= 4; threads++) {
        rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
        options.max_threads = threads;
        memset(into, 0xff, sizeof into);
        assert_int_equal(rapt_append(&d, &options, NULL), RAPT_OK);
        for (int i = 0; i < SLOTS; i++)
            assert_true(into[i * DIM] == (float)last[i] && into[i * DIM + DIM - 1] == (float)last[i]);
    }
}

/* should_stop, called after the checks, makes the lists hostile. */
struct hostile {
    struct drawn *drawn;
    struct random *random;
};

static int make_hostile(void *context) {
    static const int64_t extremes[] = {
        0, 1, -1, 4, 100, 4095, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_C(1) << 48};
    struct hostile *h = context;
    const bool all = random_chance(h->random, 50);
    for (int list = 0; list < 6; list++)
        for (int i = 0; i < DRAWN_MOST_TOKENS; i++)
            if (all || random_chance(h->random, 10))
                h->drawn->lists[list][i] = extremes[random_below(h->random, sizeof extremes / sizeof *extremes)];
    for (int i = 0; i < DRAWN_MOST_TOKENS; i++)
        h->drawn->narrow[i] = (int32_t)extremes[random_below(h->random, sizeof extremes / sizeof *extremes)];
    return 0;
}

static void test_changed_lists(void **state) {
    static struct drawn drawn;
    struct random random = {8};
    (void)state;
    for (int call = 0; call < scaled_work(400); call++) {
        drawn_append(&drawn, &random, call % 10 == 0);
        struct hostile hostile = {&drawn, &random};
        rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
        options.should_stop = make_hostile;
        options.should_stop_context = &hostile;
        assert_int_equal(rapt_append(&drawn.desc, &options, NULL), RAPT_OK);
        for (int side = 0; side < 2; side++)
            assert_true(guarded_is_clean(&drawn.into[side]));
        drawn_free(&drawn);
    }
}

/* A number that should_stop puts into a list. */
struct change {
    int64_t *entry, number;
};

static int make_change(void *context) {
    const struct change *change = context;
    *change->entry = change->number;
    return 0;
}

/* One token for one sequence: no room for it, or a row of a rotary table that does not exist. Nothing is written. */
static void append_with_change(rapt_append_desc *d, struct change change) {
    float from[8] = {0}, into[8];
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    options.should_stop = make_change;
    options.should_stop_context = &change;
    d->batch = d->kv_heads = d->length = 1, d->head_dim = 8;
    d->key = rapt_input_bhsd(from, 1, 1, 1, 8);
    d->key_cache = rapt_output_bhsd(into, 1, 1, d->cache_length, 8);
    memset(into, 0xff, sizeof into);
    assert_int_equal(rapt_append(d, &options, NULL), RAPT_OK);
    assert_int_equal(*change.entry, change.number);
    for (int i = 0; i < 8; i++)
        assert_int_equal(bits_of(into[i]), UINT32_MAX);
}

static void test_changed_number(void **state) {
    const float table[4] = {1, 1, 1, 1};
    int64_t length = 0, rotary_position = 0, position = 0;
    rapt_append_desc d = RAPT_APPEND_DESC_INIT, rotated = RAPT_APPEND_DESC_INIT;
    (void)state;
    d.positions = rotated.positions = rapt_int64_list(&position, 1);
    d.lengths = rapt_int64_list(&length, 1);
    append_with_change(&d, (struct change){&length, 1});
    rotated.cache_length = 1;
    rotated.rotary = (rapt_rotary){
        .pairing = RAPT_ROTARY_HALVES, .dim = 8, .cosines = table, .sines = table, .table_positions = 1};
    rotated.rotary_positions = rapt_int64_list(&rotary_position, 1);
    append_with_change(&rotated, (struct change){&rotary_position, 1});
    rotary_position = 0;
    append_with_change(&rotated, (struct change){&rotary_position, -1});
    d.lengths = (rapt_index_list){0};
    d.cache_length = 1;
    append_with_change(&d, (struct change){&position, 1});
}

/* Hostile from the start: refused with nothing written, or valid. */
static void test_hostile_lists(void **state) {
    static struct drawn drawn;
    struct random random = {9};
    int refused = 0, calls = (int)scaled_work(400);
    (void)state;
    for (int call = 0; call < calls; call++) {
        drawn_append(&drawn, &random, false);
        rapt_index_list *const lists[] = {
            &drawn.desc.lengths,          &drawn.desc.offsets,       &drawn.desc.positions,    &drawn.desc.slots,
            &drawn.desc.rotary_positions, &drawn.desc.pages.entries, &drawn.desc.pages.offsets};
        rapt_index_list *list = lists[random_below(&random, 7)];
        if (list->data && list->count > 0 && list->index_bytes == 8)
            ((int64_t *)(uintptr_t)list->data)[random_below(&random, list->count)] =
                random_chance(&random, 50) ? random_between(&random, -2, 300) : (int64_t)random_bits(&random);
        rapt_message message;
        const rapt_status status = rapt_append(&drawn.desc, NULL, &message);
        if (status == RAPT_OK) {
            drawn_expect(&drawn);
        } else {
            assert_int_equal(status, RAPT_INVALID_VALUE);
            assert_true(message.text[0]);
            refused++;
        }
        assert_true(drawn_is_right(&drawn));
        drawn_free(&drawn);
    }
    assert_true(calls < 200 || refused > calls / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_remains),
        cmocka_unit_test(test_changed_lists),
        cmocka_unit_test(test_changed_number),
        cmocka_unit_test(test_hostile_lists),
    };
    return cmocka_run_group_tests_name("append_lists", tests, NULL, NULL);
}
