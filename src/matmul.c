/* SPDX-License-Identifier: MIT */
#include "matmul.h"

#include "fpenv.h"

enum { BLOCK = 256 };

static float weight_at(const rapt_matmul_desc *d, int64_t k, int64_t n) {
    const bool out_in = d->weight_layout == RAPT_WEIGHT_OUT_IN;
    const char *row = (const char *)d->weight + (out_in ? n : k) * d->weight_stride_bytes;
    return ((const float *)(const void *)row)[out_in ? k : n];
}

static __attribute__((noinline)) void multiply(const rapt_matmul_desc *d) {
    for (int64_t m = 0; m < d->rows; m++) {
        const float *x = (const float *)(const void *)((const char *)d->x + m * d->x_stride_bytes);
        float *out = (float *)(void *)((char *)d->out + m * d->out_stride_bytes);
        for (int64_t n = 0; n < d->columns; n++) {
            float total = 0;
            for (int64_t k = 0; k < d->inner;) {
                float sum = 0;
                for (int64_t end = k + BLOCK; k < d->inner && k < end; k++)
                    sum += x[k] * weight_at(d, k, n);
                total += sum;
            }
            out[n] = total + (d->bias ? d->bias[n] : 0.0f);
        }
    }
}

rapt_status rapt_matmul(const rapt_matmul_desc *desc, const rapt_run_options *options, rapt_message *message) {
    (void)options;
    const rapt_status status = rapt_validate_matmul(desc, message);
    if (status != RAPT_OK)
        return status;
    rapt_fpenv environment = rapt_fpenv_enter();
    multiply(desc);
    rapt_fpenv_leave(environment);
    return RAPT_OK;
}
