/* SPDX-License-Identifier: MIT */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reference.h"
#include "tool.h"

struct difference {
    double absolute;
    double relative; /* to the largest expected number of the row */
};

/* 0 for equal infinities and for NaN where NaN is expected. */
static double distance(double got, double expected) {
    if (got == expected || (isnan(got) && isnan(expected))) return 0;
    double difference = fabs(got - expected);
    return isnan(difference) ? INFINITY : difference;
}

static void add_row(struct difference *largest, const float *got, const double *expected, int64_t count) {
    double absolute = 0, magnitude = 0;
    for (int64_t i = 0; i < count; i++) {
        absolute = fmax(absolute, distance(got[i], expected[i]));
        magnitude = fmax(magnitude, fabs(expected[i]));
    }
    largest->absolute = fmax(largest->absolute, absolute);
    if (absolute > 0) largest->relative = fmax(largest->relative, absolute / magnitude);
}

static bool print(const char *name, struct difference largest, const struct option_number *tolerance) {
    bool fine = !tolerance->given || largest.absolute <= (double)tolerance->value;
    printf("%-8s largest error %.2g, %.2g of its row's maximum", name, largest.absolute, largest.relative);
    if (tolerance->given) printf("; %s %.2g", fine ? "within" : "EXCEEDS", (double)tolerance->value);
    putchar('\n');
    return fine;
}

/* Rows of out stand as the layout says, the truth's as [batch, heads, queries]. */
static struct difference compare_out(const rapt_attention_desc *desc, const double *truth) {
    struct difference largest = {0};
    for (int64_t b = 0; b < desc->batch; b++) {
        for (int64_t h = 0; h < desc->query_heads; h++) {
            for (int64_t i = 0; i < desc->query_length; i++, truth += desc->value_dim) {
                const char *row = (const char *)desc->out.data + b * desc->out.batch_stride_bytes +
                                  h * desc->out.head_stride_bytes + i * desc->out.token_stride_bytes;
                add_row(&largest, (const float *)row, truth, desc->value_dim);
            }
        }
    }
    return largest;
}

static struct difference compare_array(const struct npy_array *got, const double *expected,
                                       int64_t row_length) {
    struct difference largest = {0};
    for (int64_t i = 0; i + row_length <= got->count && row_length > 0; i += row_length) {
        add_row(&largest, (const float *)got->data + i, expected + i, row_length);
    }
    return largest;
}

bool compare_with_truth(const struct problem *problem, const struct attend_options *options) {
    static const struct option_number any = {0};
    const struct npy_array *lse = &problem->lse, *weights = &problem->weights;
    double *truth = tool_allocate(problem->out.count, sizeof *truth, "--check");
    double *truth_lse = lse->data ? tool_allocate(lse->count, sizeof *truth_lse, "--check") : NULL;
    double *truth_weights =
        weights->data ? tool_allocate(weights->count, sizeof *truth_weights, "--check") : NULL;
    rapt_truth_attention(&problem->desc, truth, truth_lse, truth_weights);
    bool fine = print("check", compare_out(&problem->desc, truth), &options->tolerance);
    if (truth_lse) print(" lse", compare_array(lse, truth_lse, 1), &any);
    if (truth_weights)
        print(" weights", compare_array(weights, truth_weights, problem->desc.kv_length), &any);
    return fine;
}

const double *compare_load(const struct problem *problem, const struct attend_options *options) {
    const struct npy_array *out = &problem->out;
    struct npy_array expected = npy_read(options->expect, NPY_FLOAT32 | NPY_FLOAT64);
    char has[NPY_SHAPE_TEXT], wants[NPY_SHAPE_TEXT];
    if (expected.dims != out->dims || memcmp(expected.shape, out->shape, sizeof expected.shape) != 0) {
        tool_die("%s %s does not fit the result %s", expected.path,
                 npy_shape_text(expected.dims, expected.shape, has),
                 npy_shape_text(out->dims, out->shape, wants));
    }
    if (expected.type == NPY_FLOAT64) return expected.data;
    double *numbers = tool_allocate(expected.count, sizeof *numbers, expected.path);
    for (int64_t i = 0; i < expected.count; i++) numbers[i] = (double)((const float *)expected.data)[i];
    return numbers;
}

bool compare_with_file(const struct problem *problem, const struct attend_options *options, const double *expected) {
    return print("expect", compare_array(&problem->out, expected, problem->desc.value_dim), &options->tolerance);
}
