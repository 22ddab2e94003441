/* SPDX-License-Identifier: MIT
 * Keys and values in pages, read in place: a block's runs are the rows that the table names, and what is prefetched are
 * rows of the sequence and head, each before its use. */
#include "support/cmocka_all.h"
#include "support/unit.h"

enum { MOST_KEYS = 1500, HEADS = 2 };

struct bench {
    rapt_attention_desc desc;
    rapt_plan plan;
    struct rapt_run run;
    struct rapt_task task;
    struct rapt_source source;
    int32_t entries[2 * MOST_KEYS];
    bool fetched[MOST_KEYS];
};

static const char *row_of(const struct bench *bench, int side, int64_t token) {
    const rapt_tensor *tensor = side == RAPT_KEYS ? &bench->desc.key : &bench->desc.value;
    const rapt_page_table *table = &bench->desc.key_pages;
    const int64_t page = bench->entries[token / table->page_tokens];
    return (const char *)tensor->data + page * tensor->page_stride_bytes +
           bench->task.kv_head * tensor->head_stride_bytes + token % table->page_tokens * tensor->token_stride_bytes;
}

static rapt_tensor pages_of(struct random *random, int32_t dtype, int64_t pages, int64_t page_tokens, int64_t dim) {
    rapt_tensor tensor = random_chance(random, 50) ? rapt_tensor_bhsd(NULL, dtype, pages, HEADS, page_tokens, dim)
                                                   : rapt_tensor_bshd(NULL, dtype, pages, page_tokens, HEADS, dim);
    tensor.data = test_alloc((size_t)tensor.extent_bytes);
    memset(tensor.data, 0, (size_t)tensor.extent_bytes);
    tensor.page_stride_bytes = tensor.batch_stride_bytes;
    return tensor;
}

static void draw(struct bench *bench, struct random *random) {
    static const int64_t page_tokens[] = {1, 2, 3, 15, 16, 17, 32, 100, 128, 600, MOST_KEYS};
    static const int32_t dtypes[] = {RAPT_F32, RAPT_F16, RAPT_Q8_0};
    rapt_attention_desc *desc = &bench->desc;
    *desc = (rapt_attention_desc)RAPT_ATTENTION_DESC_INIT;
    const int32_t dtype = dtypes[random_below(random, 3)];
    const int64_t sizes = dtype == RAPT_Q8_0 ? 6 : 11; /* longer pages of blocks are handled one by one */
    const int64_t page = page_tokens[random_below(random, sizes)], dim = 32 * random_between(random, 1, 20);
    desc->isa = RAPT_ISA_SCALAR;
    desc->batch = 1;
    desc->query_heads = desc->kv_heads = HEADS;
    desc->query_length = 1;
    desc->kv_length = random_between(random, 1, MOST_KEYS);
    desc->head_dim = desc->value_dim = dim;
    const int64_t used = (desc->kv_length + page - 1) / page, pages = used + random_below(random, 3);
    for (int32_t i = 0; i < pages; i++) { /* shuffled, or in order */
        const int64_t other = random_below(random, 2) ? i : random_below(random, i + 1);
        bench->entries[i] = bench->entries[other];
        bench->entries[other] = i;
    }
    desc->key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE, .page_tokens = page, .pages = pages};
    desc->key_pages.entries = rapt_int32_list(bench->entries, used);
    desc->value_pages = desc->key_pages;
    desc->key = pages_of(random, dtype, pages, page, dim);
    desc->value = pages_of(random, dtype, pages, page, dim);
    desc->query = rapt_input_bhsd(test_floats(HEADS * dim), 1, HEADS, 1, dim);
    desc->out = rapt_output_bhsd(test_floats(HEADS * dim), 1, HEADS, 1, dim);
    rapt_message why;
    if (rapt_plan_init(&bench->plan, desc, &why) != RAPT_OK)
        fail_msg("%s", why.text);
}

/* All of some tokens at once, by the table. */
static struct rapt_rows ask(struct bench *bench, int side, struct rapt_span tokens) {
    const struct rapt_rows rows = rapt_source_rows(&bench->source, side, tokens);
    const struct rapt_stored_run *run = rows.runs;
    int64_t left = rows.first;
    const char *row = rows.base;
    assert_int_equal(rows.count, tokens.end - tokens.begin);
    for (int64_t token = tokens.begin; token < tokens.end; token++, left--, row += rows.stride_bytes) {
        if (left == 0)
            row = run->row, left = run++->rows;
        assert_true(left > 0 && row == row_of(bench, side, token));
    }
    assert_int_equal(left, 0);
    assert_true(run->rows == INT64_MAX);
    return rows;
}

/* Each strand lies within rows of the head in one page, and begins with a row. */
static void note_strands(struct bench *bench, int side, const struct rapt_strands *ahead, int64_t row_bytes,
                         int64_t stride_bytes) {
    const int64_t page_tokens = bench->desc.key_pages.page_tokens, length = bench->desc.kv_length;
    assert_int_equal(ahead->count % ahead->interleaved, 0);
    assert_int_equal(ahead->bytes % row_bytes, 0);
    const int64_t rows = ahead->bytes / row_bytes;
    assert_true(rows <= page_tokens && (rows == 1 || stride_bytes == row_bytes));
    for (int i = 0; i < ahead->count; i++) {
        int64_t token = 0;
        while (token < length && row_of(bench, side, token) != ahead->strand[i])
            token++;
        if (token == length)
            fail_msg("strand %d of %d begins with no row of the sequence", i, ahead->count);
        assert_true(token % page_tokens + rows <= page_tokens);
        for (int64_t row = 0; row < rows && token + row < length; row++)
            bench->fetched[token + row] = true;
    }
}

static void check(struct bench *bench, int side, struct random *random) {
    const struct rapt_plan_body *plan = rapt_body_of(&bench->plan);
    const struct rapt_span visible = bench->task.visible;
    const int64_t row_bytes = rapt_format_row_bytes(plan->format[side], rapt_dim_of(plan, side));
    memset(bench->fetched, 0, sizeof bench->fetched);
    rapt_source_open(&bench->source, &bench->task, visible);
    for (int64_t base = 0; (base = rapt_next_block(visible, base)) >= 0; base += RAPT_BLOCK_KEYS) {
        const struct rapt_span keys = rapt_block_of(visible, base);
        const struct rapt_rows rows = ask(bench, side, keys);
        note_strands(bench, side, rows.ahead, row_bytes, rows.stride_bytes);
        for (int64_t token = visible.begin + RAPT_BLOCK_KEYS; token < keys.end; token++)
            if (!bench->fetched[token])
                fail_msg("token %lld of [%lld, %lld) was not fetched", (long long)token, (long long)visible.begin,
                         (long long)visible.end);
    }
    for (int turn = 0; turn < 5; turn++) { /* parts of blocks, as for sparse masks */
        const int64_t begin = random_between(random, visible.begin, visible.end - 1);
        const struct rapt_span block = rapt_block_of(visible, begin / RAPT_BLOCK_KEYS * RAPT_BLOCK_KEYS);
        ask(bench, side, (struct rapt_span){begin, random_between(random, begin + 1, block.end)});
    }
}

static void test_paged_source(void **state) {
    struct random random = {52};
    for (int64_t turn = scaled_work(300); turn > 0; turn--) {
        static struct bench bench;
        draw(&bench, &random);
        const struct rapt_plan_body *plan = rapt_body_of(&bench.plan);
        struct rapt_work *table = test_alloc(rapt_work_table_bytes(plan) + 1);
        assert_true(rapt_work_write(plan, table));
        bench.run = (struct rapt_run){.plan = plan, .works = table};
        rapt_task_find(&bench.task, &bench.run, random_below(&random, plan->totals.all_tasks), 1);
        for (int side = 0; side < RAPT_SIDES; side++) {
            assert_false(bench.task.work.stages[side]);
            check(&bench, side, &random);
        }
        test_free_all();
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_paged_source)};
    return cmocka_run_group_tests_name("unit_pages", tests, NULL, NULL);
}
