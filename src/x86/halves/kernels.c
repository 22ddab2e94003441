/* SPDX-License-Identifier: MIT
 * Narrow tiles of some rows on processors that split vectors; the kernels of AVX-512 call these. Loads and stores are
 * the limit there (docs/performance/processors.md): each FMA loads a number of a query, so keys are transposed with few
 * loads, and none goes through memory. Others that load halves as fast gain by that as well. */
#include "cpu.h"
#include "x86/halves/kind.h"

#define RAPT_TAKES_ROWS RAPT_HAS_HALF_SQUARES
#define RAPT_HALF_SQUARES 1
/* While they fit L1; float32 of few rows waits for memory instead, as all do where vectors are whole. */
#define RAPT_LONG_TURNS(format, rows, bytes)                                                                     \
    (rapt_cpu_splits_vectors() && ((format) == RAPT_FORMAT_F32 ? (rows) >= 7 && (bytes) <= 16 << 10              \
                                                               : (rows) >= 3 && (bytes) <= 32 << 10))
#define RAPT_WORD_FORMATS(X, rows) \
    X(f32, F32, rows) X(bf16, BF16, rows) X(f16, F16, rows) X(q8_0, Q8_0, rows) X(q4_0, Q4_0, rows)
#define RAPT_STORED_FORMATS(X) X(f16, F16) X(bf16, BF16) X(q8_0, Q8_0) X(q4_0, Q4_0)

#include "x86/avx512/simd.h"
#include "generic/exp2.h"
#include "generic/beside.h"

void rapt_score_half_squares(const struct rapt_score_args *args) {
    assume_score(args, NARROW_ROWS);
    score_narrow_words(args);
}

void rapt_score_beside_half_squares(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                    int heads) {
    score_beside(score, weigh, heads);
}
