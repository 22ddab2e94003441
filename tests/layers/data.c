/* SPDX-License-Identifier: MIT */
#include "layers/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/errors.h"
#include "support/support.h"

enum { MAX_ROWS = 256 };

static const char *data_folder, *case_name;
static double case_slack;
static struct row { const char *name; char what[24]; double reached, original, tolerance; } rows[MAX_ROWS];
static int row_count, rounds;
static uint64_t hash, first_hash;

rapt_isa layers_isa;
int32_t layers_threads;

const rapt_run_options *layers_options(void) {
    static rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    options.max_threads = layers_threads;
    return &options;
}

void layers_begin(const char *folder) { data_folder = folder; }

void layers_case(const char *name, double slack) {
    case_name = name;
    case_slack = slack;
}

struct npy_array load(const char *name, unsigned accepted) {
    char *path = malloc(512);
    assert_non_null(path);
    snprintf(path, 512, "%s/%s/%s.npy", data_folder, case_name, name);
    struct npy_array array = npy_read(path, accepted);
    free(path);
    return array;
}

const float *floats(const char *name) { return load(name, NPY_FLOAT32).data; }

const unsigned char *mask_bytes(const char *name) {
    struct npy_array array = load(name, NPY_BOOL | NPY_INT32);
    if (array.type == NPY_BOOL) return array.data;
    unsigned char *bytes = test_alloc((size_t)array.count);
    for (int64_t i = 0; i < array.count; i++) bytes[i] = ((const int32_t *)array.data)[i] != 0;
    return bytes;
}

float *results(int64_t count) { return test_floats(count); }

rapt_linear linear(const char *weight, const char *bias) {
    struct npy_array array = load(weight, NPY_FLOAT32);
    assert_int_equal(array.dims, 2);
    return rapt_linear_of(array.data, bias ? floats(bias) : NULL, array.shape[1], array.shape[0]);
}

rapt_linear linear_in_out(const char *weight) {
    struct npy_array array = load(weight, NPY_FLOAT32);
    return rapt_linear_in_out(array.data, NULL, array.shape[0], array.shape[1]);
}

void expect(const char *name, const float *got) {
    char name64[32];
    snprintf(name64, sizeof name64, "%s64", name);
    struct npy_array original = load(name, NPY_FLOAT32), exact = load(name64, NPY_FLOAT64);
    struct row row = {.name = case_name};
    snprintf(row.what, sizeof row.what, "%s", name);
    double magnitude = 0;
    for (int64_t i = 0; i < exact.count; i++) {
        const double value = ((const double *)exact.data)[i];
        magnitude = larger_error(magnitude, fabs(value));
        row.original = larger_error(row.original, fabs((double)((const float *)original.data)[i] - value));
        row.reached = larger_error(row.reached, fabs((double)got[i] - value));
    }
    row.tolerance = fmax(case_slack * row.original, ldexp(magnitude, -21));
    hash = hash_floats(hash, got, exact.count);
    if (!(row.reached <= row.tolerance))
        fail_msg("%s %s: error %.3g, allowed is %.3g", case_name, name, row.reached, row.tolerance);
    if (rounds == 0 && row_count < MAX_ROWS) rows[row_count++] = row;
}

void expect_heads(const char *name, const float *got, int64_t row, int64_t first, int64_t step) {
    struct npy_array shaped = load(name, NPY_FLOAT32);
    float *apart = results(shaped.count), *to = apart;
    const int64_t *s = shaped.shape;
    assert_int_equal(shaped.dims, 4);
    for (int64_t b = 0; b < s[0]; b++) {
        for (int64_t h = 0; h < s[1]; h++) {
            for (int64_t t = 0; t < s[2]; t++, to += s[3])
                memcpy(to, got + (b * s[2] + t) * row + first + h * step, (size_t)s[3] * sizeof(float));
        }
    }
    expect(name, apart);
}

void expect_digits(const float *got, const float *digits, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        char text[2][32];
        snprintf(text[0], sizeof text[0], "%.4f", (double)got[i]);
        snprintf(text[1], sizeof text[1], "%.4f", (double)digits[i]);
        assert_string_equal(text[0], text[1]);
    }
}

void expect_ok(rapt_status status, const rapt_message *message) {
    if (status != RAPT_OK) fail_msg("%s: %s: %s", case_name, rapt_status_text(status), message->text);
}

void layers_end_round(void) {
    if (rounds++ == 0) first_hash = hash;
    if (hash != first_hash)
        fail_msg("%s, %d threads: other bits than in the first round", rapt_isa_name(layers_isa), layers_threads);
    hash = 0;
    test_free_all();
}

void layers_print_table(void) {
    print_message("# %-32s %-16s %9s %9s %9s\n", "case", "result", "reached", "original", "allowed");
    for (int i = 0; i < row_count; i++)
        print_message("# %-32s %-16s %9.2g %9.2g %9.2g\n", rows[i].name, rows[i].what, rows[i].reached,
                      rows[i].original, rows[i].tolerance);
}

rapt_attention_desc attention(int64_t batch, int64_t heads, int64_t query_length, int64_t kv_length) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.isa = (int32_t)layers_isa;
    desc.batch = batch;
    desc.query_heads = desc.kv_heads = heads;
    desc.query_length = query_length;
    desc.kv_length = kv_length;
    return desc;
}

float *ask_weights(rapt_attention_desc *desc) {
    float *weights = results(desc->batch * desc->query_heads * desc->query_length * desc->kv_length);
    desc->weights = rapt_output_bhsd(weights, desc->batch, desc->query_heads, desc->query_length, desc->kv_length);
    desc->weights_kind = RAPT_WEIGHTS_SOFTMAX;
    return weights;
}
