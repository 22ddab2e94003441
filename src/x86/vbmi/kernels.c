/* SPDX-License-Identifier: MIT
 * Float8 keys and values of narrow tiles, for which the kernels of AVX-512 call these where the processor has VBMI. */
#include "x86/vbmi/bytes.h"

#define RAPT_WORD_FORMATS(X, rows) X(f8_e4m3, F8_E4M3, rows) X(f8_e5m2, F8_E5M2, rows)
#define RAPT_STORED_FORMATS(X) X(f8_e4m3, F8_E4M3) X(f8_e5m2, F8_E5M2)

#include "generic/exp2.h"
#include "generic/score_words.h"
#include "generic/weigh_stored.h"
#include "x86/vbmi/kind.h"

void rapt_score_float8(const struct rapt_score_args *args) { score_narrow_words(args); }
void rapt_weigh_float8(const struct rapt_weigh_args *args) { weigh_narrow(args); }
