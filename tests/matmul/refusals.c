/* SPDX-License-Identifier: MIT
 * Every refusal of a matrix product: status, the field in the message, nothing written. */
#include "matmul/matmul.h"

#include "support/cmocka_all.h"

static float memory[64]; /* of all four, so that each can overlap another */
static float *const x = memory, *const weight = memory + 8, *const bias = memory + 24, *const out = memory + 32;

/* 2 x 3 times 3 x 4. */
static rapt_matmul_desc fresh(void) {
    rapt_matmul_desc d = RAPT_MATMUL_DESC_INIT;
    d.weight_layout = RAPT_WEIGHT_IN_OUT;
    d.rows = 2;
    d.inner = 3;
    d.columns = 4;
    d.x = x;
    d.x_stride_bytes = 12;
    d.weight = weight;
    d.weight_stride_bytes = 16;
    d.bias = bias;
    d.out = out;
    d.out_stride_bytes = 16;
    memset(out, 0xff, 8 * sizeof(float));
    return d;
}

static bool is_untouched(void) {
    for (int i = 0; i < 8; i++)
        if (bits_of(out[i]) != UINT32_MAX)
            return false;
    return true;
}

static void expect_refused(const rapt_matmul_desc *d, const rapt_run_options *options, rapt_status expected,
                           const char *text, int line) {
    rapt_message message = {"?"};
    rapt_status status = rapt_matmul(d, options, &message);
    if (status != expected || !strstr(message.text, text) || !is_untouched())
        fail_msg("line %d: status %d, message \"%s\", %s", line, (int)status, message.text,
                 is_untouched() ? "nothing written" : "something written");
    assert_int_equal(rapt_matmul(d, options, NULL), expected);
}

#define REFUSED(status, text, ...)                                                                 \
    do {                                                                                           \
        rapt_matmul_desc changed = fresh(), *d = &changed;                                         \
        __VA_ARGS__;                                                                               \
        expect_refused(d, NULL, status, text, __LINE__);                                           \
    } while (0)

#define LEGAL(...)                                                                                 \
    do {                                                                                           \
        rapt_matmul_desc changed = fresh(), *d = &changed;                                         \
        __VA_ARGS__;                                                                               \
        product_run(d, NULL);                                                                      \
    } while (0)

static float *moved(float *base, int bytes) { return (float *)(void *)((char *)base + bytes); }

static void refuse_fields(void) {
    const int64_t absurd = ((int64_t)1 << 40) + 1;
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size = 0", d->struct_size = 0);
    REFUSED(RAPT_UNSUPPORTED_VERSION, "struct_size", d->struct_size += 8);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "weight_layout = 2", d->weight_layout = 2);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "weight_layout = -1", d->weight_layout = -1);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "isa = ", d->isa = RAPT_ISA_COUNT);
    REFUSED(RAPT_UNSUPPORTED_FLAG, "isa = -1", d->isa = -1);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "x_dtype = 3", d->x_dtype = RAPT_F16);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "weight_dtype = 2", d->weight_dtype = RAPT_BOOL8);
    REFUSED(RAPT_UNSUPPORTED_DTYPE, "out_dtype = -1", d->out_dtype = -1);
    REFUSED(RAPT_INVALID_SHAPE, "rows = -1", d->rows = -1);
    REFUSED(RAPT_INVALID_SHAPE, "inner = -2", d->inner = -2);
    REFUSED(RAPT_INVALID_SHAPE, "columns = -9223372036854775808", d->columns = INT64_MIN);
    REFUSED(RAPT_INVALID_SHAPE, "rows = 1099511627777", d->rows = absurd);
    REFUSED(RAPT_INVALID_SHAPE, "inner = 1099511627777", d->inner = absurd);
    REFUSED(RAPT_INVALID_SHAPE, "columns = 1099511627777", d->columns = absurd);
}

static void refuse_memory(void) {
    REFUSED(RAPT_NULL_POINTER, "x is NULL", d->x = NULL);
    REFUSED(RAPT_NULL_POINTER, "weight is NULL", d->weight = NULL);
    REFUSED(RAPT_NULL_POINTER, "out is NULL", d->out = NULL);
    REFUSED(RAPT_MISALIGNED_POINTER, "x = ", d->x = moved(x, 1));
    REFUSED(RAPT_MISALIGNED_POINTER, "weight = ", d->weight = moved(weight, 2));
    REFUSED(RAPT_MISALIGNED_POINTER, "bias = ", d->bias = moved(bias, 3));
    REFUSED(RAPT_MISALIGNED_POINTER, "out = ", d->out = moved(out, 2));
    REFUSED(RAPT_INVALID_STRIDE, "x_stride_bytes = 13", d->x_stride_bytes = 13);
    REFUSED(RAPT_INVALID_STRIDE, "weight_stride_bytes = -2", d->weight_stride_bytes = -2);
    REFUSED(RAPT_INVALID_STRIDE, "out_stride_bytes = 18", d->out_stride_bytes = 18);
    REFUSED(RAPT_INVALID_STRIDE, "out_stride_bytes = 0", d->out_stride_bytes = 0);
    REFUSED(RAPT_INVALID_STRIDE, "out_stride_bytes = -16", d->out_stride_bytes = -16);
    REFUSED(RAPT_INVALID_STRIDE, "x_stride_bytes", d->x_stride_bytes = INT64_MAX - 3);
    REFUSED(RAPT_INVALID_STRIDE, "x_stride_bytes", d->x_stride_bytes = INT64_MIN);
    REFUSED(RAPT_INVALID_STRIDE, "weight_stride_bytes", d->weight_stride_bytes = INT64_MIN / 2);
    REFUSED(RAPT_INVALID_STRIDE, "x_stride_bytes = -8192: the rows leave the address space",
            d->x = (const float *)(uintptr_t)4096, d->x_stride_bytes = -8192);
    REFUSED(RAPT_INVALID_STRIDE, "weight_stride_bytes = -4100: the rows leave the address space",
            d->weight = (const float *)(uintptr_t)8192, d->weight_stride_bytes = -4100);
    REFUSED(RAPT_INVALID_STRIDE, "out_stride_bytes", d->out_stride_bytes = INT64_MAX - 3);
    REFUSED(RAPT_INVALID_STRIDE, "out_stride_bytes", d->rows = (int64_t)1 << 40, d->x_stride_bytes = 0,
            d->out_stride_bytes = (int64_t)1 << 40);
    /* Single rows have no stride that could be at fault. */
    REFUSED(RAPT_INVALID_STRIDE, "bias = ", d->bias = (const float *)(UINTPTR_MAX - 7));
    REFUSED(RAPT_INVALID_STRIDE, "x = ", d->rows = 1, d->x = (const float *)(UINTPTR_MAX - 7));
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps itself", d->out_stride_bytes = 12);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps x", d->x = out + 1);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps x", d->x = out + 8, d->x_stride_bytes = -12); /* its second row */
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps weight", d->weight = out - 11);
    REFUSED(RAPT_OVERLAPPING_OUTPUT, "out overlaps bias", d->bias = out + 7);
}

static void refuse_options(void) {
    const rapt_matmul_desc d = fresh();
    rapt_run_options options = {.struct_size = sizeof options + 1};
    expect_refused(&d, &options, RAPT_UNSUPPORTED_VERSION, "options.struct_size", __LINE__);
    options = (rapt_run_options){.struct_size = sizeof options, .max_threads = -1};
    expect_refused(&d, &options, RAPT_INVALID_VALUE, "options.max_threads = -1", __LINE__);
    expect_refused(NULL, NULL, RAPT_NULL_POINTER, "desc is NULL", __LINE__);
}

void test_product_refusals(void **state) {
    (void)state;
    refuse_fields();
    refuse_memory();
    refuse_options();
    LEGAL(d->bias = NULL);
    LEGAL(d->rows = 0, d->x = d->weight = d->bias = d->out = NULL);
    LEGAL(d->rows = 0, d->bias = moved(bias, 1));
    LEGAL(d->columns = 0, d->x = d->weight = d->bias = d->out = NULL);
    LEGAL(d->columns = 0, d->rows = 1);
    LEGAL(d->inner = 0, d->x = d->weight = NULL, d->x_stride_bytes = 3);
    LEGAL(d->x = weight, d->bias = weight, d->x_stride_bytes = 4);
    rapt_matmul_desc d = fresh();
    rapt_message message = {"?"};
    d.rows = 0;
    assert_int_equal(rapt_matmul(&d, NULL, &message), RAPT_OK);
    assert_true(message.text[0] == 0 && is_untouched());
}
