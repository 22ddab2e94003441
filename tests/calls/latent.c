/* SPDX-License-Identifier: MIT
 * Latent attention: one KV head, with values a view of its keys. The bits of the specification, which reads keys and
 * values separately, for every storage type, in place and in pages; and the error against double. */
#include <math.h>

#include "plan/plan.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/errors.h"
#include "support/problem.h"
#include "support/stored.h"

static const struct {
    int64_t head_dim, value_dim;
} dims[] = {{576, 512}, {320, 256}, {192, 128}};

static struct problem_call call_of(int size, int format, int64_t heads, int64_t queries, int64_t keys) {
    return (struct problem_call){.batch = 1, .query_heads = heads, .kv_heads = 1, .query_length = queries,
                                 .kv_length = keys, .head_dim = dims[size].head_dim, .value_dim = dims[size].value_dim,
                                 .use = USE_VIEW | USE_LSE | USE_CAUSAL, .origin = RAPT_ORIGIN_BOTTOM_RIGHT,
                                 .seed = (uint64_t)(keys + queries), .key_format = format, .key_scales = 1};
}

static int64_t view_of(const rapt_attention_desc *desc) {
    rapt_plan plan;
    assert_int_equal(rapt_plan_init(&plan, desc, NULL), RAPT_OK);
    return rapt_body_of(&plan)->values_in_keys;
}

/* On every table, contiguous and in pages; some kinds stage short pages, others read them in place. */
static void check(struct problem_call call) {
    static const int64_t pages[] = {0, 16, 100};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(call.numerics, tables);
    struct problem *expected = problem_expected(&call);
    assert_int_equal(view_of(&expected->desc), 0);
    for (int table = 0; table < count; table++)
        for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
            const struct problem_way way = {.isa = tables[table]->isa, .threads = 1};
            const struct problem_layout layout = {.page_kind = pages[i] ? RAPT_PAGES_DENSE : 0,
                                                  .page_tokens = pages[i], .poison = true};
            problem_check(expected, &layout, &way);
        }
    problem_free(expected);
    test_free_all();
}

/* One to 17 queries of 2 to 128 heads: each tile kind. */
static void test_decode(void **state) {
    static const int64_t rows[][2] = {{16, 1}, {16, 3}, {2, 1}, {8, 1}, {40, 1}, {128, 1}, {4, 17}};
    (void)state;
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++)
        for (size_t i = 0; stored_is_key_value(format) && i < sizeof rows / sizeof rows[0]; i++)
            if (scaled_work(100) >= 100 || (i + (size_t)format) % 12 == 0)
                check(call_of((int)i % 3, format, rows[i][0], rows[i][1], i == 0 ? 600 : 270 + (int64_t)i));
}

/* Order 2; with several queries, values of excluded pairs may be NaN. */
static void test_order2(void **state) {
    static const int64_t rows[][2] = {{16, 1}, {5, 3}, {8, 2}, {3, 1}, {32, 1}, {7, 3}, {10, 2}};
    enum { SHAPES = sizeof rows / sizeof rows[0] };
    (void)state;
    for (size_t i = 0; i < 3 * SHAPES; i += scaled_work(100) < 100 ? 5 : 1) {
        const int64_t *shape = rows[i % SHAPES], keys = i % 2 ? 330 + (int64_t)i : 700;
        const int format = i % 4 == 3 ? RAPT_FORMAT_F16 : RAPT_FORMAT_BF16;
        struct problem_call call = call_of((int)i % 3, format, shape[0], shape[1], keys);
        call.numerics = 2;
        call.data = i % 4 == 2 ? DATA_NAN_ROWS : DATA_NORMAL;
        check(call);
    }
}

/* The first shape with many keys, split over tasks. */
static void test_split(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0,
                                  RAPT_FORMAT_F8_E4M3};
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i += scaled_work(100) < 100 ? 3 : 1)
        check(call_of(0, formats[i], 4, 1, 4200));
}

static void test_prefill(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0, RAPT_FORMAT_F8_E4M3};
    (void)state;
    const bool is_sample = scaled_work(100) < 100;
    for (size_t i = is_sample; i < sizeof formats / sizeof formats[0]; i += is_sample ? 4 : 1)
        check(call_of((int)i % 3, formats[i], 4, is_sample ? 20 : 70, is_sample ? 300 : 530));
}

/* Values that begin inside a key, or outside it. */
static void test_offset(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_BF16, RAPT_FORMAT_Q4_0};
    (void)state;
    for (size_t i = 0; i < 3 * sizeof formats / sizeof formats[0]; i++) {
        const struct problem_call call = call_of((int)i % 3, formats[i / 3], 16, i % 2 ? 9 : 1, 300);
        struct problem *expected = problem_new(&call), *problem = problem_new(&call);
        const int64_t bytes = rapt_format_row_bytes(formats[i / 3], 64);
        const struct problem_way way = {.isa = RAPT_ISA_AUTO, .threads = 1};
        expected->desc.value.data = (char *)expected->desc.value.data + bytes;
        problem->desc.value.data = (char *)problem->desc.value.data + bytes;
        assert_int_equal(view_of(&problem->desc), 64);
        rapt_reference_attention(&expected->desc);
        problem_run(problem, &way);
        assert_true(problem_same(problem, expected));
        problem->desc.value.token_stride_bytes = 0;
        assert_int_equal(view_of(&problem->desc), -1);
        problem_free(expected);
        problem_free(problem);
        test_free_all();
    }
}

/* Values are a view only if every number of theirs is in the key beside it. */
static void test_no_view(void **state) {
    static const int32_t entries[2][1] = {{0}, {0}};
    static float memory[4096], scales[2][64];
    (void)state;
    for (int change = -1; change < 10; change++) {
        rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
        const bool scaled = change >= 6, paged = !scaled;
        d.batch = d.query_heads = d.kv_heads = 1;
        d.query_length = 1, d.kv_length = 8, d.head_dim = 64, d.value_dim = 32;
        d.query = rapt_input_bhsd(memory, 1, 1, 1, 64);
        d.out = rapt_output_bhsd(scales[0] + 32, 1, 1, 1, 32);
        d.key = rapt_tensor_bhsd(memory + 64, scaled ? RAPT_I8 : RAPT_F32, 1, 1, 8, 64);
        d.key.extent_bytes = 0;
        if (paged) {
            d.key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE, .page_tokens = 8, .pages = 2};
            d.key_pages.entries = rapt_int32_list(entries[0], 1);
            d.key.page_stride_bytes = 8 * 64 * 4, d.key.batch_stride_bytes = 0;
        } else {
            d.key.scale_dtype = RAPT_F32, d.key.scales = scales[1], d.key.scale_token_stride_bytes = 16;
        }
        d.value = d.key, d.value_pages = d.key_pages;
        if (change == 0)
            d.value_pages.entries.data = entries[1];
        else if (change == 1)
            d.value.page_stride_bytes += 64;
        else if (change == 2)
            d.value_pages.pages = 1;
        else if (change == 3)
            d.value.token_stride_bytes += 4;
        else if (change == 4)
            d.value.data = (char *)d.value.data + 33 * 4; /* beyond the key */
        else if (change == 5)
            d.key.dtype = d.value.dtype = RAPT_Q8_0, d.key.page_stride_bytes = d.value.page_stride_bytes = 1088,
            d.key.token_stride_bytes = d.value.token_stride_bytes = 136,
            d.value.data = (char *)d.value.data + 2; /* within a block */
        else if (change == 6)
            d.value.scale_group = 16;
        else if (change == 7)
            d.value.scales = scales[1] + 1;
        else if (change == 8)
            d.value.scale_token_stride_bytes = 20;
        else if (change == 9)
            d.value.data = (char *)d.value.data + 16;
        assert_int_equal(view_of(&d), change < 0 ? 0 : -1);
    }
}

/* The same of several sequences and heads, and of zero points; and of a plan that has no data yet. */
static void test_no_view_of_others(void **state) {
    static float memory[4096], scales[64];
    static signed char zero_points[64];
    (void)state;
    for (int change = -1; change < 7; change++) {
        rapt_attention_desc d = RAPT_ATTENTION_DESC_INIT;
        d.batch = d.query_heads = d.kv_heads = 2;
        d.query_length = 1, d.kv_length = 8, d.head_dim = 64, d.value_dim = 32;
        d.query = rapt_input_bhsd(memory, 2, 2, 1, 64);
        d.out = rapt_output_bhsd(memory + 3000, 2, 2, 1, 32);
        d.key = rapt_tensor_bhsd(memory + 256, RAPT_I8, 2, 2, 8, 64);
        d.key.extent_bytes = 0;
        d.key.scale_dtype = RAPT_F32, d.key.scales = scales, d.key.zero_point_dtype = RAPT_I8;
        d.key.zero_points = zero_points;
        d.key.scale_token_stride_bytes = 4, d.key.scale_head_stride_bytes = 32, d.key.scale_batch_stride_bytes = 64;
        d.value = d.key;
        if (change == 0)
            d.value.batch_stride_bytes += 64;
        else if (change == 1)
            d.value.head_stride_bytes += 64;
        else if (change == 2)
            d.value.scale_batch_stride_bytes += 4;
        else if (change == 3)
            d.value.scale_head_stride_bytes += 4;
        else if (change == 4)
            d.value.zero_points = zero_points + 1;
        else if (change == 5) {
            d.key = rapt_tensor_bhsd(memory + 256, RAPT_F8_E4M3, 2, 2, 8, 64);
            d.key.extent_bytes = 0;
            d.value.dtype = RAPT_F8_E4M3, d.value.zero_point_dtype = 0, d.value.zero_points = NULL;
        } else if (change == 6) {
            d.query.data = d.out.data = d.key.data = d.value.data = NULL, d.query.extent_bytes = d.out.extent_bytes = 0;
            d.key.scales = d.value.scales = d.key.zero_points = d.value.zero_points = NULL;
        }
        assert_int_equal(view_of(&d), change < 0 ? 0 : -1);
    }
}

/* Rebinds a plan: to values apart from the keys, and to a view again. */
static void test_bind(void **state) {
    const struct problem_call call = call_of(2, RAPT_FORMAT_F32, 4, 1, 40);
    struct problem *problem = problem_new(&call);
    const rapt_attention_desc *desc = &problem->desc;
    rapt_plan plan;
    rapt_bindings bindings = RAPT_BINDINGS_INIT;
    (void)state;
    assert_int_equal(rapt_plan_init(&plan, desc, NULL), RAPT_OK);
    bindings.query = rapt_input_buffer(desc->query.data, 0);
    bindings.key = bindings.value = rapt_input_buffer(desc->key.data, 0);
    bindings.out = rapt_output_buffer(desc->out.data, 0);
    bindings.lse = rapt_output_buffer(desc->lse.data, 0);
    bindings.value.data = test_floats((size_t)(call.kv_length * call.head_dim));
    assert_int_equal(rapt_plan_bind(&plan, &bindings, NULL), RAPT_OK);
    assert_int_equal(rapt_body_of(&plan)->values_in_keys, -1);
    bindings.value.data = desc->key.data;
    assert_int_equal(rapt_plan_bind(&plan, &bindings, NULL), RAPT_OK);
    assert_int_equal(rapt_body_of(&plan)->values_in_keys, 0);
    problem_free(problem);
    test_free_all();
}

/* With the workspace that it required when planned. */
static void run(const rapt_plan *plan, size_t bytes, float *out, size_t count) {
    memset(out, 0xff, count * sizeof *out);
    const rapt_status status = rapt_run(plan, test_alloc(bytes), bytes, NULL);
    if (status != RAPT_OK)
        fail_msg("%s", rapt_status_text(status));
}

static size_t plan_of(rapt_plan *plan, const rapt_attention_desc *desc) {
    size_t bytes = 0;
    assert_int_equal(rapt_plan_init(plan, desc, NULL), RAPT_OK);
    assert_int_equal(rapt_plan_workspace_bytes(plan, 1, &bytes), RAPT_OK);
    return bytes;
}

/* Sequences with lists are cut again at each run, as at planning, even if values became a view of the keys since, or
 * ceased to be one. */
static void test_bind_with_lists(void **state) {
    enum { HEADS = 8, GROUP = 8, TOKENS = 600, SIZE = 64, OUT = HEADS * GROUP * SIZE };
    static const int32_t lengths[] = {TOKENS - 7};
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    const int count = tables_of(RAPT_NUMERICS_ORDER_1, tables);
    struct random random = {1};
    float *const query = test_drawn(&random, OUT, quick_normal), *const out = test_floats(OUT);
    float *const key = test_drawn(&random, TOKENS * HEADS * SIZE, quick_normal), *const expected = test_floats(OUT);
    float *const value = test_drawn(&random, TOKENS * HEADS * SIZE, quick_normal);
    (void)state;
    for (int i = 0; i < 2 * count; i++) {
        const bool planned_as_view = i % 2;
        rapt_plan plan, alone;
        rapt_bindings bindings = RAPT_BINDINGS_INIT;
        rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
        desc.isa = tables[i / 2]->isa;
        desc.batch = 1, desc.query_heads = HEADS * GROUP, desc.kv_heads = HEADS;
        desc.query_length = 1, desc.kv_length = TOKENS, desc.head_dim = desc.value_dim = SIZE;
        desc.kv_lengths = rapt_int32_list(lengths, 1);
        desc.query = rapt_input_bhsd(query, 1, HEADS * GROUP, 1, SIZE);
        desc.key = rapt_input_bhsd(key, 1, HEADS, TOKENS, SIZE);
        desc.key.token_stride_bytes = HEADS * SIZE * (int64_t)sizeof(float);
        desc.key.head_stride_bytes = SIZE * (int64_t)sizeof(float);
        desc.value = desc.key;
        desc.out = rapt_output_bhsd(out, 1, HEADS * GROUP, 1, SIZE);
        desc.value.data = planned_as_view ? key : value;
        const size_t bytes = plan_of(&plan, &desc);
        desc.value.data = planned_as_view ? value : key;
        run(&alone, plan_of(&alone, &desc), out, OUT);
        memcpy(expected, out, OUT * sizeof *out);
        bindings.query = rapt_input_buffer(query, 0), bindings.key = rapt_input_buffer(key, 0);
        bindings.value = rapt_input_buffer(desc.value.data, 0), bindings.out = rapt_output_buffer(out, 0);
        assert_int_equal(rapt_plan_bind(&plan, &bindings, NULL), RAPT_OK);
        run(&plan, bytes, out, OUT);
        assert_memory_equal(out, expected, OUT * sizeof *out);
    }
    test_free_all();
}

/* A chain of 576 products is off by about 24 roundings, its root, and so are weights; results average values two to
 * three times as large. */
static void test_error(void **state) {
    static const int formats[] = {RAPT_FORMAT_F32, RAPT_FORMAT_F16, RAPT_FORMAT_BF16, RAPT_FORMAT_Q8_0};
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const struct problem_call call = call_of(0, formats[i], 16, 1, 500);
        struct problem *problem = problem_new(&call);
        const struct problem_way way = {.isa = RAPT_ISA_AUTO, .threads = 1};
        double *truth = test_alloc((size_t)(call.query_heads * call.value_dim) * sizeof *truth);
        problem_run(problem, &way);
        rapt_truth_attention(&problem->desc, truth, NULL, NULL);
        for (int64_t h = 0; h < call.query_heads; h++) {
            const char *row = problem->desc.out.data;
            const float *out = (const float *)(const void *)(row + h * problem->desc.out.head_stride_bytes);
            double largest = 0, error = 0;
            for (int64_t d = 0; d < call.value_dim; d++) {
                const double expected = truth[h * call.value_dim + d];
                error = larger_error(error, fabs((double)out[d] - expected));
                largest = fabs(expected) > largest ? fabs(expected) : largest;
            }
            assert_true(largest > 0 && error < 64 * 0x1p-24 * largest);
        }
        problem_free(problem);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decode), cmocka_unit_test(test_order2),
                                       cmocka_unit_test(test_split),  cmocka_unit_test(test_prefill),
                                       cmocka_unit_test(test_offset), cmocka_unit_test(test_bind),
                                       cmocka_unit_test(test_bind_with_lists),
                                       cmocka_unit_test(test_no_view), cmocka_unit_test(test_no_view_of_others),
                                       cmocka_unit_test(test_error)};
    return cmocka_run_group_tests_name("latent", tests, NULL, NULL);
}
