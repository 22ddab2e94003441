/* SPDX-License-Identifier: MIT
 * Float8 keys and values of narrow tiles; the kernels of AVX-512 call these where the processor has VBMI. */
#include "x86/vbmi/narrow.h"

/* As in caches written without scales; multiplying by 1 changes nothing. */
static bool are_ones(const struct rapt_scales *scales) {
    return !scales->scales || (scales->stride_bytes == 0 && scales->scales[0] == 1);
}

void rapt_score_float8(const struct rapt_score_args *args) {
    (are_ones(&args->scales) ? rapt_score_float8_unscaled : score_narrow_words)(args);
}

void rapt_weigh_float8(const struct rapt_weigh_args *args) {
    (are_ones(&args->scales) ? rapt_weigh_float8_unscaled : weigh_narrow)(args);
}

void rapt_score_beside_float8(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads) {
    bool unscaled = true;
    for (int head = 0; head < heads; head++)
        unscaled &= are_ones(&score[head].scales) && are_ones(&weigh[head].scales);
    (unscaled ? rapt_score_beside_float8_unscaled : score_beside)(score, weigh, heads);
}
