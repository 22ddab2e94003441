/* SPDX-License-Identifier: MIT
 * Narrow tiles of one row or two from memory, where vectors are whole and halves load fast: one vector of keys at a
 * time, whose turns are half as long. Turns of two vectors leave L1 where heads take them, or rows are long. */
#include "x86/halves/kind.h"

#define RAPT_TAKES_ROWS RAPT_HAS_ONE_VECTOR
#define RAPT_HALF_SQUARES 1
#define RAPT_WORD_VECTORS 1
#define RAPT_WORD_FORMATS(X, rows) X(bf16, BF16, rows) X(f16, F16, rows)
#define RAPT_STORED_FORMATS(X) X(f16, F16) X(bf16, BF16)

#include "x86/avx512/simd.h"
#include "generic/exp2.h"
#include "generic/beside.h"

void rapt_score_beside_one_vector(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                  int heads) {
    score_beside(score, weigh, heads);
}
