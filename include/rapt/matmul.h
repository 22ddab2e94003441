/* SPDX-License-Identifier: MIT
 *
 * rapt's own float32 matrix product, for the projections of attention layers:
 *
 *     out[m][n] = sum over k of x[m][k] * w(k, n) + bias[n]
 *
 * in one fixed order of operations (docs/numerics.md): the bits are the same on every instruction set, in both weight
 * layouts, for any number of threads, and however the rows are cut.
 *
 *     rapt_matmul_desc desc = RAPT_MATMUL_DESC_INIT;
 *     desc.rows = tokens;  desc.inner = 768;  desc.columns = 2304;
 *     desc.weight_layout = RAPT_WEIGHT_IN_OUT;
 *     desc.x = x;            desc.x_stride_bytes = 768 * 4;
 *     desc.weight = weight;  desc.weight_stride_bytes = 2304 * 4;
 *     desc.out = out;        desc.out_stride_bytes = 2304 * 4;
 *     rapt_message message;
 *     if (rapt_matmul(&desc, NULL, &message) != RAPT_OK) puts(message.text);
 *
 * No stable ABI yet: any release may change the struct of this header, so compile programs against the library that
 * they run with.
 */
#ifndef RAPT_MATMUL_H
#define RAPT_MATMUL_H

#include "rapt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rapt_weight_layout {
    RAPT_WEIGHT_OUT_IN = 0, /* weight[columns][inner], as torch.nn.Linear: w(k, n) = weight[n][k] */
    RAPT_WEIGHT_IN_OUT = 1  /* weight[inner][columns], as x @ W and GPT-2's Conv1D: w(k, n) = weight[k][n] */
} rapt_weight_layout;

/* Everything is float32, aligned to 4 bytes, and the numbers of a row are contiguous. Strides are in bytes, multiples
 * of 4; those of x and weight may be 0 or negative, that of out steps over a whole row; the stride of a single row is
 * ignored. Sizes are 0 ... 2^40. With inner = 0, out is the bias. x, weight and bias may overlap each other; out
 * overlaps none of them. */
typedef struct rapt_matmul_desc {
    uint32_t struct_size;   /* sizeof(rapt_matmul_desc) */
    int32_t weight_layout;  /* rapt_weight_layout */
    int64_t rows, inner, columns;
    const float *x;         /* [rows][inner] */
    int64_t x_stride_bytes;
    const float *weight;    /* [columns][inner] or [inner][columns] */
    int64_t weight_stride_bytes;
    const float *bias;      /* [columns], or NULL = none */
    float *out;             /* [rows][columns] */
    int64_t out_stride_bytes;
    int32_t isa;            /* rapt_isa */
    int32_t x_dtype, weight_dtype, out_dtype; /* 0 = RAPT_F32, the only one so far */
} rapt_matmul_desc;

/* Everything 0, struct_size filled in. */
#define RAPT_MATMUL_DESC_INIT RAPT_INIT(rapt_matmul_desc)

/* Computes out. options may be NULL: OpenMP with as many threads as it would use. Small products run on the calling
 * thread, or by parallel_for where there is one. Allocates nothing; each thread that takes part uses up to 80 KiB of
 * stack. message may be NULL.
 *
 * Statuses are those of rapt_plan_init and rapt_run. After RAPT_STOPPED and RAPT_PARALLEL_FOR_FAILED out is undefined;
 * on any other failure nothing was written to it. */
RAPT_API rapt_status rapt_matmul(const rapt_matmul_desc *desc, const rapt_run_options *options, rapt_message *message);

#ifdef __cplusplus
}
#endif
#endif
