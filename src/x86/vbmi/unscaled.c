/* SPDX-License-Identifier: MIT
 * The same kernels for scales that are all 1. */
#define RAPT_SCALES_ACT false
#include "x86/vbmi/narrow.h"

void rapt_score_float8_unscaled(const struct rapt_score_args *args) { score_narrow_words(args); }
void rapt_weigh_float8_unscaled(const struct rapt_weigh_args *args) { weigh_narrow(args); }
void rapt_score_beside_float8_unscaled(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                       int heads) {
    score_beside(score, weigh, heads);
}
