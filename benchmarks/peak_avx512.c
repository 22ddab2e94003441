/* SPDX-License-Identifier: MIT */
#include <immintrin.h>
#include <stdint.h>

/* Unsigned, since it wraps; _mm512_reduce_add_epi64 is signed. */
static inline uint64_t total_of(__m512i v) {
    uint64_t words[8], total = 0;
    _mm512_storeu_si512(words, v);
    for (int i = 0; i < 8; i++)
        total += words[i];
    return total;
}

#define NAME peak_avx512
#define LANES 16
#define REGISTERS 32
typedef __m512 vec;
#define BROADCAST _mm512_set1_ps
#define FMA _mm512_fmadd_ps
#define TOTAL _mm512_reduce_add_ps
typedef __m512i ivec;
#define IZERO _mm512_setzero_si512()
#define ILOAD(from) _mm512_load_si512((const void *)(from))
#define IADD _mm512_add_epi64
#define ITOTAL total_of

#include "peak_body.h"
