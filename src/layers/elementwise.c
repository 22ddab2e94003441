/* SPDX-License-Identifier: MIT */
#include "layers/elementwise.h"

#include "layers/elementary.h"

/* The one NaN of all results, 7fc00000, in place of any: their signs and payloads differ between machines. What is
 * only read by products and attention may keep them. */
static inline float one_nan(float x) { return x == x ? x : __builtin_nanf(""); }

/* See fpenv.h. */
#define NOT_INLINED __attribute__((noinline))

static NOT_INLINED void relu(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] < 0 ? 0 : x[i];
}

static NOT_INLINED void gelu(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)rapt_gelu(x[i]);
}

static NOT_INLINED void gelu_tanh(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)rapt_gelu_tanh(x[i]);
}

void rapt_activate(float *x, int64_t count, rapt_activation activation) {
    switch (activation) {
    case RAPT_RELU: relu(x, count); break;
    case RAPT_GELU: gelu(x, count); break;
    case RAPT_GELU_TANH: gelu_tanh(x, count); break;
    }
}

NOT_INLINED void rapt_add(const float *a, const float *b, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = one_nan(a[i] + b[i]);
}

NOT_INLINED void rapt_tanh_of(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)rapt_tanh(x[i]);
}

NOT_INLINED void rapt_scale(float *x, int64_t count, double factor) {
    for (int64_t i = 0; i < count; i++)
        x[i] = one_nan((float)(factor * x[i]));
}

enum { LANES = 8 };

/* Eight sums side by side, element i in sum i % 8, then added in order. */
static double sum_of_squares(const float *x, int64_t width, double mean) {
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += (x[i + l] - mean) * (x[i + l] - mean);
    for (int l = 0; i < width; i++, l++)
        lane[l] += (x[i] - mean) * (x[i] - mean);
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

static double sum_of(const float *x, int64_t width) {
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l];
    for (int l = 0; i < width; i++, l++)
        lane[l] += x[i];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

NOT_INLINED void rapt_normalise(const rapt_norm *norm, const float *x, int64_t tokens, int64_t width, float *out) {
    for (int64_t t = 0; t < tokens; t++, x += width, out += width) {
        const double mean = sum_of(x, width) / (double)width;
        const double variance = sum_of_squares(x, width, mean) / (double)width;
        const double inverse = 1 / __builtin_sqrt(variance + norm->epsilon);
        for (int64_t i = 0; i < width; i++) {
            const double y = (x[i] - mean) * inverse;
            const double scaled = y * (norm->gamma ? norm->gamma[i] : 1) + (norm->beta ? norm->beta[i] : 0);
            out[i] = one_nan((float)scaled);
        }
    }
}

/* a: [rows][units], b: [columns][units] */
NOT_INLINED void rapt_additive_scores(const float *a, const float *b, const float *v, int64_t rows, int64_t columns,
                                      int64_t units, float *scores) {
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            double sum = 0;
            for (int64_t k = 0; k < units; k++)
                sum += v[k] * rapt_tanh((double)a[i * units + k] + b[j * units + k]);
            scores[i * columns + j] = one_nan((float)sum);
        }
    }
}

NOT_INLINED void rapt_positions(const float *x, const float *v, int64_t rows, int64_t units, int64_t keys,
                                float *position) {
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t k = 0; k < units; k++)
            sum += v[k] * rapt_tanh(x[i * units + k]);
        position[i] = one_nan((float)((double)keys * rapt_sigmoid(sum)));
    }
}

NOT_INLINED void rapt_gauss_window(const float *position, int64_t rows, int64_t keys, int64_t reach,
                                   unsigned char *mask, float *gauss) {
    const double inverse = 2 / ((double)reach * (double)reach);
    for (int64_t i = 0; i < rows; i++, mask += keys, gauss += keys) {
        for (int64_t s = 0; s < keys; s++) {
            const double distance = (double)s - position[i];
            mask[s] = !(__builtin_fabs(distance) > (double)reach);
            gauss[s] = (float)(gauss[s] - distance * distance * inverse);
        }
    }
}

NOT_INLINED double rapt_gauss_share(const float *align, float position, int64_t keys, int64_t reach) {
    const double inverse = 2 / ((double)reach * (double)reach);
    double sum = 0;
    for (int64_t s = 0; s < keys; s++) {
        const double distance = (double)s - position;
        if (align[s] != 0)
            sum += align[s] * rapt_exp(-(distance * distance * inverse));
    }
    return sum;
}
