/* SPDX-License-Identifier: MIT
 * Rows times a panel of 32 columns by VDPBF16PS, with the bits of a matrix unit (numerics.md, order 2). */
#ifndef RAPT_X86_BF16_PRODUCT_H
#define RAPT_X86_BF16_PRODUCT_H

#include "x86/bf16/pack.h"

/* c = a * b, or c + a * b. ASSUME additions flush as order 2 does (unit_flush); VDPBF16PS always does. */
struct dots_product {
    const uint32_t *a; /* words, rows a_stride words apart */
    int64_t a_stride;
    const uint32_t *b; /* [steps][DOTS_WORDS][DOTS_COLUMNS] */
    float *c;          /* rows c_stride floats apart */
    int64_t c_stride;
    int steps;
    bool adds;
};

RAPT_INLINE __m512 dots_add(__m512 sum, uint32_t pair, __m512i pairs) {
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32((int)pair), (__m512bh)pairs);
}

RAPT_INLINE void dots_clear(__m512 *even, __m512 *odd, int count) {
    RAPT_UNROLL for (int i = 0; i < count; i++) {
        even[i] = odd[i] = _mm512_setzero_ps();
        __asm__("" : "+v"(even[i]), "+v"(odd[i])); /* separately: copies of one zero wait for each other */
    }
}

/* A word of even and one of odd terms: b has two vectors of columns for each. */
RAPT_INLINE void dots_word(__m512 *even, __m512 *odd, const uint32_t *a, int64_t a_stride, const __m512i *b, int rows) {
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        const uint32_t *row = a + r * a_stride;
        even[2 * r] = dots_add(even[2 * r], row[0], b[0]);
        even[2 * r + 1] = dots_add(even[2 * r + 1], row[0], b[1]);
        odd[2 * r] = dots_add(odd[2 * r], row[DOTS_WORDS / 2], b[2]);
        odd[2 * r + 1] = dots_add(odd[2 * r + 1], row[DOTS_WORDS / 2], b[3]);
    }
}

RAPT_INLINE void dots_store(__m512 *even, const __m512 *odd, float *c, int64_t c_stride, bool adds, int rows) {
    RAPT_UNROLL for (int i = 0; i < 2 * rows; i++)
        even[i] = _mm512_add_ps(even[i], odd[i]);
    if (adds)
        RAPT_UNROLL for (int i = 0; i < 2 * rows; i++)
            even[i] = _mm512_add_ps(_mm512_load_ps(c + i / 2 * c_stride + i % 2 * 16), even[i]);
    RAPT_UNROLL for (int i = 0; i < 2 * rows; i++)
        _mm512_store_ps(c + i / 2 * c_stride + i % 2 * 16, even[i]);
}

/* ahead: one of its lines is prefetched per word; NULL = none. */
RAPT_INLINE void dots_multiply_rows(const struct dots_product *p, int rows, struct unit_ahead *ahead) {
    const uint32_t *a = p->a, *b = p->b;
    const int64_t a_stride = p->a_stride, c_stride = p->c_stride;
    float *const c = p->c;
    bool adds = p->adds;
    for (int steps = p->steps; steps > 0; steps--, a += DOTS_WORDS, b += DOTS_OF_STEP) {
        __m512 even[2 * DOTS_ROWS], odd[2 * DOTS_ROWS];
        dots_clear(even, odd, 2 * rows);
        for (int word = 0; word < DOTS_WORDS / 2; word++) {
            const uint32_t *columns = b + word * DOTS_COLUMNS, *beside = columns + DOTS_OF_STEP / 2;
            const __m512i four[] = {_mm512_loadu_si512(columns), _mm512_loadu_si512(columns + 16),
                                    _mm512_loadu_si512(beside), _mm512_loadu_si512(beside + 16)};
            if (ahead)
                unit_fetch(ahead);
            dots_word(even, odd, a + word, a_stride, four, rows);
        }
        dots_store(even, odd, c, c_stride, adds, rows);
        adds = true;
    }
}

static RAPT_KERNEL void dots_multiply_1(const struct dots_product *p) { dots_multiply_rows(p, 1, NULL); }
static RAPT_KERNEL void dots_multiply_2(const struct dots_product *p) { dots_multiply_rows(p, 2, NULL); }
static RAPT_KERNEL void dots_multiply_4(const struct dots_product *p) { dots_multiply_rows(p, 4, NULL); }
static RAPT_KERNEL void dots_multiply_6(const struct dots_product *p) { dots_multiply_rows(p, DOTS_ROWS, NULL); }

RAPT_INLINE void dots_advance(struct dots_product *p, int rows) {
    p->a += rows * p->a_stride;
    p->c += rows * p->c_stride;
}

/* Rows to take at once: seven and eight are halved, since chains of two rows are latency-bound. */
RAPT_INLINE int dots_height(int rows) { return rows <= 4 || rows == 7 || rows == 8 ? 4 : DOTS_ROWS; }

/* `rows` rows of a tile from p's on, perhaps rounded up to DOTS_ROWS. Advances p itself: copying a struct whose fields
 * were just stored would stall. */
static void dots_multiply(struct dots_product *p, int rows) {
    while (rows > 4) {
        const int height = dots_height(rows);
        (height == 4 ? dots_multiply_4 : dots_multiply_6)(p);
        dots_advance(p, height);
        rows -= height;
    }
    if (rows > 0)
        (rows > 2 ? dots_multiply_4 : rows > 1 ? dots_multiply_2 : dots_multiply_1)(p);
}

#endif
