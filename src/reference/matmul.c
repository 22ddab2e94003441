/* SPDX-License-Identifier: MIT
 * Matrix products of docs/numerics.md in scalar C, one number of out at a time. */
#include "reference/reference.h"

#include <math.h>

static const float *row_of(const float *base, int64_t stride_bytes, int64_t row) {
    return (const float *)(const void *)((const char *)base + row * stride_bytes);
}

static float weight_at(const rapt_matmul_desc *desc, int64_t k, int64_t n) {
    return desc->weight_layout == RAPT_WEIGHT_OUT_IN ? row_of(desc->weight, desc->weight_stride_bytes, n)[k]
                                                     : row_of(desc->weight, desc->weight_stride_bytes, k)[n];
}

/* Terms [begin, begin + 64), as far as there are any. */
static float chain(const rapt_matmul_desc *desc, const float *x, int64_t begin, int64_t n) {
    float s = 0.0f;
    for (int64_t k = begin; k < begin + 64 && k < desc->inner; k++) {
        s = fmaf(x[k], weight_at(desc, k, n), s);
    }
    return s;
}

static float product(const rapt_matmul_desc *desc, const float *x, int64_t n) {
    float t = 0.0f;
    for (int64_t k = 0; k < desc->inner; k += 256) {
        float first = chain(desc, x, k, n) + chain(desc, x, k + 64, n);
        float second = chain(desc, x, k + 128, n) + chain(desc, x, k + 192, n);
        t = t + (first + second);
    }
    return rapt_reference_export(desc->bias ? t + desc->bias[n] : t);
}

void rapt_reference_matmul(const rapt_matmul_desc *desc) {
    for (int64_t m = 0; m < desc->rows; m++) {
        float *out = (float *)(void *)((char *)desc->out + m * desc->out_stride_bytes);
        const float *x = desc->inner ? row_of(desc->x, desc->x_stride_bytes, m) : NULL; /* as it may be then */
        for (int64_t n = 0; n < desc->columns; n++) {
            out[n] = product(desc, x, n);
        }
    }
}
