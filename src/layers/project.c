/* SPDX-License-Identifier: MIT */
#include "layers/project.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "fpenv.h"

#if defined(RAPT_BLAS_ACCELERATE)
#include <Accelerate/Accelerate.h>
#elif defined(RAPT_BLAS)
#include <cblas.h>
#endif

#ifdef RAPT_BLAS

/* Whether a BLAS can walk rows of width floats at this stride. */
static bool blas_takes(int64_t rows, int64_t width, int64_t stride_bytes) {
    return rows <= INT_MAX && width <= INT_MAX &&
           (rows < 2 || (stride_bytes >= width * 4 && stride_bytes / 4 <= INT_MAX));
}

static int leading(int64_t rows, int64_t width, int64_t stride_bytes) {
    return (int)(rows < 2 ? width : stride_bytes / 4);
}

/* ASSUME desc is not empty; false if no BLAS can do it. */
static bool run_blas(const rapt_matmul_desc *desc) {
    const bool out_in = desc->weight_layout == RAPT_WEIGHT_OUT_IN;
    const int64_t m = desc->rows, n = desc->columns, k = desc->inner;
    const int64_t weight_rows = out_in ? n : k, weight_width = out_in ? k : n;
    if (!blas_takes(m, k, desc->x_stride_bytes) || !blas_takes(m, n, desc->out_stride_bytes) ||
        !blas_takes(weight_rows, weight_width, desc->weight_stride_bytes))
        return false;
    const int ld_out = leading(m, n, desc->out_stride_bytes);
    for (int64_t row = 0; desc->bias && row < m; row++)
        memcpy(desc->out + row * ld_out, desc->bias, (size_t)n * sizeof(float));
    const rapt_fpenv saved = rapt_fpenv_enter(); /* a BLAS computes in the caller's modes, and sets its flags */
    cblas_sgemm(CblasRowMajor, CblasNoTrans, out_in ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1.0f, desc->x,
                leading(m, k, desc->x_stride_bytes), desc->weight,
                leading(weight_rows, weight_width, desc->weight_stride_bytes), desc->bias ? 1.0f : 0.0f, desc->out,
                ld_out);
    rapt_fpenv_leave(saved);
    return true;
}

#endif

rapt_status rapt_project(const rapt_matmul_desc *desc, const rapt_run_options *options, rapt_message *message) {
#ifdef RAPT_BLAS
    if (desc->rows && desc->columns && desc->inner && run_blas(desc))
        return RAPT_OK;
#endif
    return rapt_matmul(desc, options, message);
}
