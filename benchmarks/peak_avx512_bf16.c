/* SPDX-License-Identifier: MIT
 *
 * The peak of AVX512_BF16: independent dot products of pairs on registers. */
#include "peak_kernels.h"

#include <immintrin.h>

enum { SUMS = 24, LANES = 16, TERMS = 2 };

static float multiply(int64_t rounds) {
    __m512 sum[SUMS];
    __m512i numbers = _mm512_set1_epi32(0x3f803f00);
#pragma GCC unroll 32
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm512_set1_ps((float)i);
    for (int64_t round = 0; round < rounds; round++) {
        __asm__("" : "+v"(numbers)); /* else sums are hoisted */
#pragma GCC unroll 32
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm512_dpbf16_ps(sum[i], (__m512bh)numbers, (__m512bh)numbers);
    }
    for (int i = 1; i < SUMS; i++)
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    return _mm512_reduce_add_ps(sum[0]);
}

const struct peak_kernels peak_avx512_bf16 = {
    .fma = multiply,
    .flops_per_round = 2.0 * SUMS * LANES * TERMS,
};
