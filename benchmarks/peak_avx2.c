/* SPDX-License-Identifier: MIT */
#include <immintrin.h>
#include <stdint.h>

static inline float first_of(__m256 v) {
    return _mm256_cvtss_f32(v);
}

static inline uint64_t total_of(__m256i v) {
    uint64_t words[4];
    _mm256_storeu_si256((__m256i *)words, v);
    return words[0] + words[1] + words[2] + words[3];
}

#define NAME peak_avx2
#define LANES 8
#define REGISTERS 16
typedef __m256 vec;
#define BROADCAST _mm256_set1_ps
#define FMA _mm256_fmadd_ps
#define TOTAL first_of
typedef __m256i ivec;
#define IZERO _mm256_setzero_si256()
#define ILOAD(from) _mm256_load_si256((const __m256i *)(from))
#define IADD _mm256_add_epi64
#define ITOTAL total_of

#include "peak_body.h"
