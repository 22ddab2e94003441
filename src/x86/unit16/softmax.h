/* SPDX-License-Identifier: MIT
 * Order 2: the online softmax of half a block (numerics.md, order 2, steps 3 to 6). Scores are rows of keys, and
 * become probabilities of 16 bits in place, packed from the start of their row. */
#ifndef RAPT_X86_UNIT16_SOFTMAX_H
#define RAPT_X86_UNIT16_SOFTMAX_H

#include "generic/unit_softmax.h"
#include "x86/unit16/pack.h"

#define UNIT16_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

/* Shared by the rows of a half. t = y * factor. */
struct unit16_softmax_args {
    float *y;                /* [rows][RAPT_HALF_KEYS], 32 at most, as below */
    float *lanes;            /* of l: [rows][RAPT_SUM_LANES] */
    float *largest;          /* [rows][16]: the largest y of some keys, or -y where the factor is negative */
    float *m, *alpha;        /* [rows] */
    float *offset;           /* [32]: of exponents; */
    uint32_t large_rows;     /* bit row: its maximum is so large that the offset is not used */
    int rows, first, last;   /* steps [first, last) of 32 keys */
    float factor;
    bool fresh;              /* lanes hold nothing yet */
};

/* Reduces each of 16 rows of 16 lanes. combine: max, or + (in the order of step 7). */
#define UNIT16_JOIN(name, combine)                                                                                  \
    static __m512 name(const float *lanes) {                                                                        \
        __m512 a[8], b[4], c[2];                                                                                    \
        RAPT_UNROLL for (int i = 0; i < 8; i++) {                                                                   \
            const __m512 x = _mm512_load_ps(lanes + 16 * i), y = _mm512_load_ps(lanes + 16 * (i + 8));              \
            a[i] = combine(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xee));                     \
        }                                                                                                           \
        RAPT_UNROLL for (int i = 0; i < 4; i++)                                                                     \
            b[i] = combine(_mm512_shuffle_f32x4(a[i], a[i + 4], 0x88), _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd)); \
        RAPT_UNROLL for (int i = 0; i < 2; i++)                                                                     \
            c[i] = combine(_mm512_unpacklo_ps(b[i], b[i + 2]), _mm512_unpackhi_ps(b[i], b[i + 2]));                 \
        const __m512 d = combine(_mm512_unpacklo_ps(c[0], c[1]), _mm512_unpackhi_ps(c[0], c[1]));                   \
        return _mm512_shuffle_f32x4(d, d, 0xd8);                                                                    \
    }
UNIT16_JOIN(unit16_largest, _mm512_max_ps)
UNIT16_JOIN(unit16_sum, _mm512_add_ps)

/* Updates `largest` of rows [row, end) with a step's keys; ignores NaN. */
RAPT_INLINE void unit16_maxima(const struct unit16_softmax_args *h, int step, int row, int end) {
    const __m512 sign = _mm512_set1_ps(h->factor < 0 ? -0.0f : 0.0f);
    for (; row < end; row++) {
        const float *y = h->y + row * RAPT_HALF_KEYS + step * RAPT_STEP;
        float *largest = h->largest + row * 16;
        __m512 most = step == h->first ? _mm512_set1_ps(-RAPT_INFINITY) : _mm512_load_ps(largest);
        most = _mm512_max_ps(_mm512_xor_ps(_mm512_load_ps(y), sign), most);
        _mm512_store_ps(largest, _mm512_max_ps(_mm512_xor_ps(_mm512_load_ps(y + 16), sign), most));
    }
}

/* m, alpha and the offsets of all rows. */
RAPT_INLINE void unit16_new_maxima(struct unit16_softmax_args *h) {
    const __m512 none = _mm512_set1_ps(-RAPT_INFINITY), shift = _mm512_set1_ps(UNIT16_IS_F16 ? 15 : 0);
    const __m512 factor = _mm512_set1_ps(h->factor < 0 ? -h->factor : h->factor);
    h->large_rows = 0;
    for (int row = 0; row < h->rows; row += 16) {
        const __mmask16 there = (__mmask16)unit16_first(h->rows - row);
        const __m512 t = _mm512_mul_ps(unit16_largest(h->largest + row * 16), factor);
        const __m512 before = _mm512_maskz_loadu_ps(there, h->m + row), m = _mm512_max_ps(t, before);
        const __m512 mu = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(m, none, _CMP_NEQ_UQ), m);
        const __mmask16 large = _mm512_cmp_ps_mask(_mm512_abs_ps(mu), _mm512_set1_ps(0x1p22f), _CMP_NLT_UQ);
        _mm512_mask_storeu_ps(h->alpha + row, there, unit_alpha(_mm512_sub_ps(before, m)));
        _mm512_mask_storeu_ps(h->m + row, there, m);
        _mm512_store_ps(h->offset + row, _mm512_sub_ps(_mm512_setzero_ps(), _mm512_sub_ps(mu, shift)));
        h->large_rows |= (uint32_t)(large & there) << row;
    }
}

/* ------------------------------------------------------------ exponentials */

/* Of Q, highest power first. */
#if UNIT16_IS_F16
enum { UNIT16_DEGREE = 4 };
static const float unit16_factors[] = {0x1.3a02ccp-7f, 0x1.c9fc46p-5f, 0x1.ec0378p-3f, 0x1.62e12cp-1f, 1.0f};
#else
enum { UNIT16_DEGREE = 3 };
static const float unit16_factors[] = {0x1.c2a218p-5f, 0x1.f00c4cp-3f, 0x1.62f5fap-1f, 1.0f};
#endif

/* Q(r) * 2^n of x = n + r, +0 below -48. VREDUCEPS rounds x to nearest even, and its difference is exact then. */
RAPT_INLINE __m512 unit16_exp2(__m512 x) {
    const __m512 r = _mm512_reduce_ps(x, 0), n = _mm512_sub_ps(x, r);
    __m512 q = _mm512_set1_ps(unit16_factors[0]);
    RAPT_UNROLL for (int i = 1; i <= UNIT16_DEGREE; i++)
        q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(unit16_factors[i]));
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(-48), _CMP_NLT_UQ), q, n);
}

/* Rounded to nearest even; an intrinsic would need all of this file to be compiled for AVX512_BF16. */
RAPT_INLINE __m512i unit16_rounded(__m512 low, __m512 high) {
    __m512i both;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(high), "v"(low));
    return both;
}

struct unit16_row {
    __m512 factor, offset, m, shift;
};

RAPT_INLINE __m512 unit16_exponent(__m512 y, const struct unit16_row *row, int large) {
    return large ? _mm512_add_ps(_mm512_sub_ps(_mm512_mul_ps(y, row->factor), row->m), row->shift)
                 : _mm512_fmadd_ps(y, row->factor, row->offset);
}

/* 32 keys: probabilities, rounded, and the lanes of l. VPSHUFB leaves the port of VPSLLD to FMAs. */
RAPT_INLINE __m512 unit16_step(float *y, uint16_t *p, const struct unit16_row *row, __m512 l, int large) {
    const __m512 a = unit16_exp2(unit16_exponent(_mm512_load_ps(y), row, large));
    const __m512 b = unit16_exp2(unit16_exponent(_mm512_load_ps(y + 16), row, large));
    if (UNIT16_IS_F16) {
        const __m256i low = _mm512_cvtps_ph(a, UNIT16_NEAREST);
        const __m256i high = _mm512_cvtps_ph(b, UNIT16_NEAREST);
        _mm256_store_si256((__m256i *)(void *)p, low);
        _mm256_store_si256((__m256i *)(void *)(p + 16), high);
        return _mm512_add_ps(_mm512_add_ps(l, _mm512_cvtph_ps(low)), _mm512_cvtph_ps(high));
    }
    const __m512i even = _mm512_set4_epi32(0x0d0c8080, 0x09088080, 0x05048080, 0x01008080);
    const __m512i both = unit16_rounded(a, b);
    _mm512_store_si512(p, both);
    l = _mm512_add_ps(l, _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32((int)0xffff0000))));
    return _mm512_add_ps(l, _mm512_castsi512_ps(_mm512_shuffle_epi8(both, even)));
}

/* `count` rows, interleaved. */
RAPT_INLINE void unit16_exp_rows(const struct unit16_softmax_args *h, int number, int count, int large) {
    struct unit16_row row[2];
    __m512 l[2];
    RAPT_UNROLL for (int i = 0; i < count; i++) {
        row[i] = (struct unit16_row){_mm512_set1_ps(h->factor), _mm512_set1_ps(h->offset[number + i]),
                                     _mm512_set1_ps(h->m[number + i]), _mm512_set1_ps(UNIT16_IS_F16 ? 15 : 0)};
        l[i] = _mm512_load_ps(h->lanes + (number + i) * RAPT_SUM_LANES);
        l[i] = h->fresh ? _mm512_setzero_ps() : _mm512_mul_ps(l[i], _mm512_set1_ps(h->alpha[number + i]));
    }
    float *y = h->y + number * RAPT_HALF_KEYS;
    for (int step = h->first; step < h->last; step++)
        RAPT_UNROLL for (int i = 0; i < count; i++) {
            float *line = y + i * RAPT_HALF_KEYS;
            l[i] = unit16_step(line + step * RAPT_STEP, (uint16_t *)(void *)line + step * RAPT_STEP, &row[i], l[i],
                               large);
        }
    RAPT_UNROLL for (int i = 0; i < count; i++)
        _mm512_store_ps(h->lanes + (number + i) * RAPT_SUM_LANES, l[i]);
}

RAPT_INLINE void unit16_exponentials(const struct unit16_softmax_args *h) {
    int row = 0;
    if (!h->large_rows)
        for (; row + 1 < h->rows; row += 2)
            unit16_exp_rows(h, row, 2, 0);
    for (; row < h->rows; row++)
        if (h->large_rows >> row & 1)
            unit16_exp_rows(h, row, 1, 1);
        else
            unit16_exp_rows(h, row, 1, 0);
}

#endif
