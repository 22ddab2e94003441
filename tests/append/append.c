/* SPDX-License-Identifier: MIT
 * rapt_append and rapt_rotate: the reference's bytes, on every instruction set, for any number of threads. */
#include "append/draw.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/pool.h"

enum way { SERIAL, OPENMP, POOL, WAYS };

static rapt_status run(const struct drawn *drawn, const struct rapt_table *table, enum way way, rapt_message *message) {
    struct pool pool = {.threads = 3};
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    rapt_append_desc desc = drawn->desc;
    options.max_threads = way == SERIAL ? 1 : way == POOL ? 3 : 0;
    options.parallel_for = way == POOL ? pool_parallel_for : NULL;
    options.parallel_for_context = &pool;
    desc.isa = (int32_t)table->isa;
    return rapt_append(&desc, &options, message);
}

static void describe_wrong(const struct drawn *drawn, const struct rapt_table *table, int call, enum way way,
                           const char *text) {
    const rapt_append_desc *d = &drawn->desc;
    fail_msg("call %d on %s, way %d: %s: batch %lld, heads %lld, length %lld, dims %lld %lld, dtypes %d %d to %d %d, "
             "slots %d, offsets %d, rotary %d %d, dim %lld, features %u",
             call, table->name, (int)way, text[0] ? text : "wrong bytes", (long long)d->batch, (long long)d->kv_heads,
             (long long)d->length, (long long)d->head_dim, (long long)d->value_dim, (int)d->key.dtype,
             (int)d->value.dtype, (int)d->key_cache.dtype, (int)d->value_cache.dtype, d->slots.data != NULL,
             d->offsets.data != NULL, (int)d->rotary.pairing, (int)d->rotary.scaling, (long long)d->rotary.dim,
             (unsigned)d->features);
}

static void test_calls(void **state) {
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int table_count = machine_tables(tables), calls = (int)scaled_work(600);
    static struct drawn drawn;
    struct random random = {2026};
    (void)state;
    for (int call = 0; call < calls; call++) {
        drawn_append(&drawn, &random, call % 20 == 0);
        drawn_expect(&drawn);
        for (int t = 0; t < table_count; t++)
            for (enum way way = SERIAL; way < WAYS; way++) {
                rapt_message message;
                drawn_reset(&drawn);
                if (run(&drawn, tables[t], way, &message) != RAPT_OK || !drawn_is_right(&drawn))
                    describe_wrong(&drawn, tables[t], call, way, message.text);
            }
        drawn_free(&drawn);
    }
}

/* Positions of tokens, or first positions of sequences, which may have lengths or be packed. */
static void draw_rotated(struct drawn *drawn, struct random *random, rapt_rotate_desc *d) {
    const int way = (int)random_below(random, 3);
    int64_t count = d->batch * d->length, *numbers = drawn->lists[0];
    if (way == 1) {
        for (int64_t b = 0; b < d->batch; b++)
            numbers[b] = random_below(random, d->length + 1);
        d->lengths = rapt_int64_list(numbers, d->batch);
    } else if (way == 2) {
        numbers[0] = random_below(random, 3);
        for (int64_t b = 0; b < d->batch; b++)
            numbers[b + 1] = numbers[b] + random_below(random, d->length + 1);
        d->tokens = count = numbers[d->batch] + random_below(random, 3);
        d->offsets = rapt_int64_list(numbers, d->batch + 1);
    }
    const bool first = random_chance(random, 50);
    const int64_t entries = first ? d->batch : count, most = first ? 1000 - d->length : 1000;
    for (int64_t i = 0; i < entries; i++)
        drawn->lists[1][i] = random_below(random, most) - (d->rotary.cosines ? 0 : 100);
    *(first ? &d->first_positions : &d->positions) = rapt_int64_list(drawn->lists[1], entries);
}

/* Queries to any of the three types. */
static void test_rotate(void **state) {
    static const int32_t dtypes[] = {RAPT_F32, RAPT_F16, RAPT_BF16};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int table_count = machine_tables(tables);
    static struct drawn drawn;
    struct random random = {7};
    (void)state;
    for (int call = 0; call < scaled_work(400); call++) {
        rapt_rotate_desc d = RAPT_ROTATE_DESC_INIT;
        d.batch = random_between(&random, 1, 3), d.heads = random_between(&random, 1, 5);
        d.length = random_between(&random, 1, 40), d.head_dim = random_between(&random, 2, call % 8 ? 140 : 1024);
        const int32_t dtype = dtypes[call % 3];
        drawn.desc = (rapt_append_desc)RAPT_APPEND_DESC_INIT;
        drawn_rotary(&drawn, &random, d.head_dim, 1000);
        d.rotary = drawn.desc.rotary;
        draw_rotated(&drawn, &random, &d);
        const int64_t batch = d.offsets.data ? 1 : d.batch, tokens = d.offsets.data ? d.tokens : d.length;
        const int64_t numbers = batch * d.heads * tokens * d.head_dim;
        const size_t bytes = (size_t)(batch * d.heads * tokens * rapt_row_bytes(dtype, d.head_dim));
        void *out = test_alloc(bytes), *expected = test_alloc(bytes);
        d.in = rapt_input_bshd(test_drawn(&random, numbers, random_special), batch, tokens, d.heads, d.head_dim);
        d.out = rapt_tensor_bhsd(expected, dtype, batch, d.heads, tokens, d.head_dim);
        memset(expected, 0xff, bytes);
        rapt_reference_rotate(&d);
        d.out.data = out;
        for (int t = 0; t < table_count; t++) {
            rapt_message message;
            d.isa = (int32_t)tables[t]->isa;
            memset(out, 0xff, bytes);
            if (rapt_rotate(&d, NULL, &message) != RAPT_OK || memcmp(out, expected, bytes) != 0)
                fail_msg("call %d on %s: %s", call, tables[t]->name, message.text);
        }
        test_free_all();
    }
}

/* A stopped call says so, and so does a caller's failing loop. */
static int stop_at_once(void *context) {
    (void)context;
    return 1;
}

static void test_interrupted(void **state) {
    static struct drawn drawn;
    struct random random = {3};
    struct pool pool = {.threads = 2, .fail_at_call = 1};
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    (void)state;
    drawn_append(&drawn, &random, true);
    options.should_stop = stop_at_once;
    rapt_message message = {"?"};
    assert_int_equal(rapt_append(&drawn.desc, &options, &message), RAPT_STOPPED);
    assert_string_equal(message.text, rapt_status_text(RAPT_STOPPED));
    options = (rapt_run_options)RAPT_RUN_OPTIONS_INIT;
    options.parallel_for = pool_parallel_for;
    options.parallel_for_context = &pool;
    assert_int_equal(rapt_append(&drawn.desc, &options, &message), RAPT_PARALLEL_FOR_FAILED);
    assert_string_equal(message.text, rapt_status_text(RAPT_PARALLEL_FOR_FAILED));
    drawn_free(&drawn);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_rotate),
        cmocka_unit_test(test_interrupted),
    };
    return cmocka_run_group_tests_name("append", tests, NULL, NULL);
}
