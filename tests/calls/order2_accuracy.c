/* SPDX-License-Identifier: MIT
 * Errors of orders 2 and 3 against attention in double on the same bfloat16 (float16, float32) numbers, relative to the
 * outputs' root mean square: docs/numerics.md states them. Outputs are float32, so the errors are the order's. */
#include <math.h>
#include <stdio.h>

#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/support.h"

struct data {
    const char *name;
    int64_t dim, keys;
    bool is_causal;
    float query_factor, value_offset;
    float (*draw)(struct random *random);
    double of_bf16, of_half, of_float; /* the stated errors */
};

static const struct data all_data[] = {
    {"normal", 64, 1024, false, 1, 0, random_normal, 1.51e-3, 1.9e-4, 1.8e-7},
    {"normal", 64, 1024, true, 1, 0, random_normal, 1.19e-3, 1.5e-4, 1.2e-7},
    {"normal", 80, 1024, false, 1, 0, random_normal, 1.47e-3, 1.9e-4, 2.1e-7},
    {"normal", 128, 1024, false, 1, 0, random_normal, 1.39e-3, 1.8e-4, 2.1e-7},
    {"normal", 128, 1024, true, 1, 0, random_normal, 1.19e-3, 1.5e-4, 1.4e-7},
    {"query * 4", 128, 1024, false, 4, 0, random_normal, 4.2e-4, 5.3e-5, 5.4e-7},
    {"value + 4", 128, 1024, false, 1, 4, random_normal, 1.9e-5, 2.4e-6, 7.0e-8},
    {"heavy-tailed", 128, 1024, false, 1, 0, random_heavy, 6.0e-4, 7.5e-5, 3.1e-7},
};

enum { QUERIES = 64 };

/* Rounded to the type. */
static rapt_tensor drawn(struct random *random, const struct data *data, int32_t dtype, int64_t rows, float factor,
                         float offset) {
    const int64_t row_bytes = rapt_row_bytes(dtype, data->dim);
    char *numbers = test_alloc((size_t)(rows * row_bytes));
    float *row = test_floats(data->dim);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t d = 0; d < data->dim; d++)
            row[d] = data->draw(random) * factor + offset;
        rapt_reference_store(dtype, row, data->dim, numbers + i * row_bytes);
    }
    return rapt_tensor_bhsd(numbers, dtype, 1, 1, rows, data->dim);
}

static double error_of(const struct data *data, int32_t dtype) {
    struct random random = {(uint64_t)data->dim};
    const int64_t count = QUERIES * data->dim;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    float *out = test_floats(count);
    double *truth = test_alloc((size_t)count * sizeof *truth), squares = 0, errors = 0;
    desc.numerics = dtype == RAPT_F32 ? RAPT_NUMERICS_ORDER_3 : RAPT_NUMERICS_ORDER_2;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = QUERIES;
    desc.kv_length = data->keys;
    desc.head_dim = data->dim;
    desc.query = drawn(&random, data, dtype, QUERIES, data->query_factor, 0);
    desc.key = drawn(&random, data, dtype, data->keys, 1, 0);
    desc.value = drawn(&random, data, dtype, data->keys, 1, data->value_offset);
    desc.out = rapt_output_bhsd(out, 1, 1, QUERIES, data->dim);
    int64_t positions[QUERIES];
    if (data->is_causal) { /* a query for every n-th key */
        for (int64_t i = 0; i < QUERIES; i++)
            positions[i] = i * data->keys / QUERIES;
        desc.features = RAPT_CAUSAL;
        desc.query_origin = RAPT_ORIGIN_GIVEN;
        desc.query_position = rapt_int64_list(positions, QUERIES);
        desc.batch = QUERIES;
        desc.query_length = 1;
        desc.query.batch_stride_bytes = desc.query.token_stride_bytes;
        desc.out.batch_stride_bytes = desc.out.token_stride_bytes;
        desc.key.batch_stride_bytes = desc.value.batch_stride_bytes = 0;
    }
    rapt_truth_attention(&desc, truth, NULL, NULL);
    rapt_reference_attention(&desc);
    for (int64_t i = 0; i < count; i++) {
        errors += ((double)out[i] - truth[i]) * ((double)out[i] - truth[i]);
        squares += truth[i] * truth[i];
    }
    test_free_all();
    return sqrt(errors / squares);
}

static void test_errors(void **state) {
    const size_t step = scaled_work(100) < 100 ? 5 : 1; /* the reference is slow under emulation */
    for (size_t n = step / 2; n < sizeof all_data / sizeof *all_data; n += step) {
        const struct data *data = &all_data[n];
        const double bf16 = error_of(data, RAPT_BF16), half = error_of(data, RAPT_F16);
        const double wide = error_of(data, RAPT_F32);
        print_message("# %s, dim %d%s: bfloat16 %.3g, stated %.3g; float16 %.3g, %.3g; float32 %.3g, %.3g\n",
                      data->name, (int)data->dim, data->is_causal ? ", causal" : "", bf16, data->of_bf16, half,
                      data->of_half, wide, data->of_float);
        if (!(bf16 <= 1.2 * data->of_bf16) || !(half <= 1.2 * data->of_half) || !(wide <= 1.2 * data->of_float))
            fail_msg("%s, dim %d: errors %g, %g, %g are above those stated", data->name, (int)data->dim, bf16, half,
                     wide);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests_name("order2_accuracy", tests, NULL, NULL);
}
