/* SPDX-License-Identifier: MIT
 * Narrow tiles of a few rows where vectors are whole and halves load fast: two vectors of keys at a time, which are
 * twice as many chains and share each number of a query. Half squares of both fit the registers, whole ones do not. */
#include "x86/halves/kind.h"

#define RAPT_TAKES_ROWS RAPT_HAS_TWO_VECTORS
#define RAPT_HALF_SQUARES 2
#define RAPT_WORD_FORMATS(X, rows) X(f32, F32, rows) X(bf16, BF16, rows) X(f16, F16, rows)
#define RAPT_STORED_FORMATS(X) X(f16, F16) X(bf16, BF16)

#include "x86/avx512/simd.h"
#include "generic/exp2.h"
#include "generic/beside.h"

void rapt_score_two_vectors(const struct rapt_score_args *args) {
    assume_score(args, NARROW_ROWS);
    score_narrow_words(args);
}

void rapt_score_beside_two_vectors(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                   int heads) {
    score_beside(score, weigh, heads);
}
