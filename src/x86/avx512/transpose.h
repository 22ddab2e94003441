/* SPDX-License-Identifier: MIT
 * Squares of rows, transposed by AVX-512. */
#ifndef RAPT_X86_AVX512_TRANSPOSE_H
#define RAPT_X86_AVX512_TRANSPOSE_H

#define RAPT_LOADS_PARTS 1

/* Per four vectors: column c of each quarter of them becomes that quarter of vector c. */
static inline __attribute__((always_inline)) void v_transpose_fours(vf32 *a, int count) {
#pragma GCC unroll 4
    for (int i = 0; i < count; i += 4) {
        const __m512 low = _mm512_unpacklo_ps(a[i], a[i + 1]), high = _mm512_unpackhi_ps(a[i], a[i + 1]);
        const __m512 low2 = _mm512_unpacklo_ps(a[i + 2], a[i + 3]), high2 = _mm512_unpackhi_ps(a[i + 2], a[i + 3]);
        a[i] = _mm512_shuffle_ps(low, low2, 0x44), a[i + 1] = _mm512_shuffle_ps(low, low2, 0xee);
        a[i + 2] = _mm512_shuffle_ps(high, high2, 0x44), a[i + 3] = _mm512_shuffle_ps(high, high2, 0xee);
    }
}

static inline __attribute__((always_inline)) void v_transpose(vf32 a[16]) {
    __m512 t[16];
    v_transpose_fours(a, 16);
#define RAPT_HALVES(i)                                                                                           \
    t[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88), t[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd),    \
    t[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88),                                                  \
    t[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd)
    RAPT_HALVES(0), RAPT_HALVES(1), RAPT_HALVES(2), RAPT_HALVES(3);
#undef RAPT_HALVES
#define RAPT_WHOLE(i)                                                                                            \
    a[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88), a[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd),    \
    a[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88),                                                  \
    a[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd)
    RAPT_WHOLE(0), RAPT_WHOLE(1), RAPT_WHOLE(2), RAPT_WHOLE(3);
#undef RAPT_WHOLE
}

/* Eight floats of rows 0 and 4. */
static inline vf32 v_two_rows(const float *const *rows, int64_t offset) {
    const vf32 first = _mm512_castps256_ps512(_mm256_loadu_ps(rows[0] + offset));
    return _mm512_insertf32x8(first, _mm256_loadu_ps(rows[4] + offset), 1);
}

/* 16 rows of 8 floats from offset on, transposed. Inserting loads do a quarter of the shuffling, on two ports. */
static inline __attribute__((always_inline)) void v_load_half_square(vf32 square[8], const float *const *rows,
                                                                     int64_t offset) {
    vf32 a[8]; /* of rows 0 ... 7 and 8 ... 15 */
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
        a[j] = v_two_rows(rows + j / 4 * 8 + j % 4, offset);
    v_transpose_fours(a, 8);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        square[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
        square[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
    }
}

static inline __attribute__((always_inline)) void v_load_square_by_halves(vf32 square[16], const float *const *rows,
                                                                          int64_t offset) {
    v_load_half_square(square, rows, offset);
    v_load_half_square(square + 8, rows, offset + 8);
}

/* Sixteen bytes of rows 0, 4, 8 and 12. */
static inline __attribute__((always_inline)) __m512i v_four_rows(const char *const *rows, int64_t offset) {
    __m512i bytes = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(rows[0] + offset)));
    bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const void *)(rows[4] + offset)), 1);
    bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const void *)(rows[8] + offset)), 2);
    return _mm512_inserti32x4(bytes, _mm_loadu_si128((const void *)(rows[12] + offset)), 3);
}

/* 64 bytes of each row: b[4 * c + j] has bytes 16 * c and on of rows j, j + 4, j + 8 and j + 12. A row is read to its
 * end at once: rows a power of two apart share an L1 set of fewer than 16 ways. */
static inline __attribute__((always_inline)) void v_load_quarters(vbits b[16], const char *const *rows,
                                                                  int64_t offset) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++)
            b[4 * c + j] = v_four_rows(rows + j, offset + 16 * c);
}

/* Of words: word i of rows 4L ... 4L + 3 is quarter L of a[i]. */
static inline __attribute__((always_inline)) void v_transpose_words(vbits a[4], const vbits b[4]) {
    const __m512i low = _mm512_unpacklo_epi32(b[0], b[1]), high = _mm512_unpackhi_epi32(b[0], b[1]);
    const __m512i low2 = _mm512_unpacklo_epi32(b[2], b[3]), high2 = _mm512_unpackhi_epi32(b[2], b[3]);
    a[0] = _mm512_unpacklo_epi64(low, low2), a[1] = _mm512_unpackhi_epi64(low, low2);
    a[2] = _mm512_unpacklo_epi64(high, high2), a[3] = _mm512_unpackhi_epi64(high, high2);
}

/* 16 rows of 16 floats from offset on, transposed. Inserting loads do half of the shuffling. */
static inline __attribute__((always_inline)) void v_load_square(vf32 square[16], const float *const *rows,
                                                                int64_t offset) {
    const char *bytes[16];
    vbits b[16], a[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        bytes[i] = (const char *)(rows[i] + offset);
    v_load_quarters(b, bytes, 0);
#pragma GCC unroll 4
    for (int c = 0; c < 16; c += 4) {
        v_transpose_words(a, b + c);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            square[c + i] = _mm512_castsi512_ps(a[i]);
    }
}

/* Of numbers of 16 bits: number 2 * i of rows 4L ... 4L + 3 and then 2 * i + 1 are quarter L of a[i]. */
static inline __attribute__((always_inline)) void v_transpose_quarters(vbits a[4], const vbits b[4]) {
    const __m512i low = _mm512_unpacklo_epi16(b[0], b[1]), low2 = _mm512_unpacklo_epi16(b[2], b[3]);
    const __m512i high = _mm512_unpackhi_epi16(b[0], b[1]), high2 = _mm512_unpackhi_epi16(b[2], b[3]);
    a[0] = _mm512_unpacklo_epi32(low, low2), a[1] = _mm512_unpackhi_epi32(low, low2);
    a[2] = _mm512_unpacklo_epi32(high, high2), a[3] = _mm512_unpackhi_epi32(high, high2);
}

/* Per eight vectors of a, which it overwrites: column c, of 16 bits, of each quarter of them becomes that quarter of
 * vector c of b. */
static inline __attribute__((always_inline)) void v_transpose_eights(__m512i *b, __m512i *a, int count) {
#pragma GCC unroll 8
    for (int j = 0; j < count; j += 2)
        b[j] = _mm512_unpacklo_epi16(a[j], a[j + 1]), b[j + 1] = _mm512_unpackhi_epi16(a[j], a[j + 1]);
#pragma GCC unroll 8
    for (int j = 0; j < count; j += 2) { /* the two lower, the two upper words of a row's quarter pair up */
        const int from = j / 4 * 4 + j % 4 / 2;
        a[j] = _mm512_unpacklo_epi32(b[from], b[from + 2]), a[j + 1] = _mm512_unpackhi_epi32(b[from], b[from + 2]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < count; j += 2) {
        const int from = j / 8 * 8 + j % 8 / 2;
        b[j] = _mm512_unpacklo_epi64(a[from], a[from + 4]), b[j + 1] = _mm512_unpackhi_epi64(a[from], a[from + 4]);
    }
}

/* 32 numbers of 16 bits of each of 16 rows, to rows of 16. */
static inline __attribute__((always_inline)) void v_transpose_shorts(uint16_t *into, const char *const *rows,
                                                                     int64_t offset) {
    const __m512i quarters = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    __m512i a[16], b[16];
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++)
        a[j] = _mm512_loadu_si512(rows[j] + offset);
    v_transpose_eights(b, a, 16);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) { /* a quarter of b[i] is number i, 8 + i, 16 + i or 24 + i of 8 rows */
        const __m512i low = _mm512_permutex2var_epi64(b[i], quarters, b[i + 8]);
        const __m512i high = _mm512_permutex2var_epi64(b[i], _mm512_or_si512(quarters, _mm512_set1_epi64(4)), b[i + 8]);
        _mm256_storeu_si256((__m256i *)(void *)(into + 16 * i), _mm512_castsi512_si256(low));
        _mm256_storeu_si256((__m256i *)(void *)(into + 16 * (i + 8)), _mm512_extracti64x4_epi64(low, 1));
        _mm256_storeu_si256((__m256i *)(void *)(into + 16 * (i + 16)), _mm512_castsi512_si256(high));
        _mm256_storeu_si256((__m256i *)(void *)(into + 16 * (i + 24)), _mm512_extracti64x4_epi64(high, 1));
    }
}

/* The same by quarters. */
static inline __attribute__((always_inline)) void v_transpose_shorts_by_quarters(uint16_t *into,
                                                                                 const char *const *rows,
                                                                                 int64_t offset) {
    const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    vbits b[16], a[4];
    v_load_quarters(b, rows, offset);
#pragma GCC unroll 4
    for (int c = 0; c < 16; c += 4) {
        v_transpose_quarters(a, b + c);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            _mm512_storeu_si512(into + 16 * (2 * c + 2 * i), _mm512_permutexvar_epi64(in_order, a[i]));
    }
}

/* 16 numbers of 16 bits of each of 16 rows, from that byte on: a[i] has number i of all rows, and then number 8 + i. */
static inline __attribute__((always_inline)) void v_load_columns(vf32 a[8], const char *const *rows, int64_t offset) {
    __m512i b[8], c[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        const __m512i first = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)(rows[j] + offset)));
        c[j] = _mm512_inserti64x4(first, _mm256_loadu_si256((const void *)(rows[8 + j] + offset)), 1);
    }
    v_transpose_eights(b, c, 8);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_castsi512_ps(_mm512_shuffle_i64x2(b[i], b[i], 0xd8));
}

/* Number n of all rows. */
static inline vf32 v_widen_column(const vf32 a[8], int n) {
    const __m512i columns = _mm512_castps_si512(a[n % 8]);
    return _mm512_cvtph_ps(n < 8 ? _mm512_castsi512_si256(columns) : _mm512_extracti64x4_epi64(columns, 1));
}

/* Sixteen bytes of each row in words of four: lane j of a[c] is word c of row j. */
static inline __attribute__((always_inline)) void v_load_words(vbits a[4], const char *const *rows, int64_t offset) {
    const __m512i b[4] = {v_four_rows(rows, offset), v_four_rows(rows + 1, offset), v_four_rows(rows + 2, offset),
                          v_four_rows(rows + 3, offset)};
    v_transpose_words(a, b);
}

#endif
