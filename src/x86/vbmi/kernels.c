/* SPDX-License-Identifier: MIT
 * Float8 keys and values of narrow tiles, for which the kernels of AVX-512 call these where the processor has VBMI. */
#include "x86/vbmi/bytes.h"

#define RAPT_WORD_FORMATS(X, rows) X(f8_e4m3, F8_E4M3, rows) X(f8_e5m2, F8_E5M2, rows)
#define RAPT_TURN_FORMATS RAPT_WORD_FORMATS
#define RAPT_STORED_FORMATS(X) X(f8_e4m3, F8_E4M3) X(f8_e5m2, F8_E5M2)

#include "generic/exp2.h"
#include "generic/beside.h"
#include "x86/vbmi/kind.h"

void rapt_score_float8(const struct rapt_score_args *args) { score_narrow_words(args); }
void rapt_weigh_float8(const struct rapt_weigh_args *args) { weigh_narrow(args); }
void rapt_score_beside_float8(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh) {
    score_beside(score, weigh);
}
