/* SPDX-License-Identifier: MIT
 * Order 2 of few rows: scores the next block's keys and weighs this one's values in turns, a step of each at a time,
 * where both are memory-bound. */
#ifndef RAPT_GENERIC_UNIT_BESIDE_H
#define RAPT_GENERIC_UNIT_BESIDE_H

#include "generic/squares.h"
#include "generic/unit_place_rows.h"
#include "generic/unit_place_sums.h"

enum { TURN_SQUARES = RAPT_STEP / (2 * VL) }; /* of VL x VL pairs of numbers in a step */

/* The scores of one turn. */
struct turn_keys {
    const char *const *row; /* [RAPT_STEP], and those after them */
    const float *query;     /* [dim / 128][all_rows][128] */
    float *c;               /* [rows][RAPT_HALF_KEYS] */
    int dim, all_rows;
    struct unit_turn_requests *ahead;
};

/* 2 * VL numbers of VL keys, transposed: pairs in registers, or float16 in L1, which convert as fast from there. */
struct turn_words {
    vf32 pairs[VL];
    uint16_t f16[2 * VL * VL];
};

RAPT_INLINE void turn_load(struct turn_words *words, const char *const *row, int64_t byte, bool quarters, int format) {
    if (format == RAPT_FORMAT_F16)
        load_square_of_shorts(words->f16, row, byte, quarters);
    else
        load_square_of_words(words->pairs, row, byte, quarters);
}

RAPT_INLINE vf32 turn_number(const struct turn_words *words, int n, int format) {
    if (format == RAPT_FORMAT_F16)
        return v_load_f16(words->f16 + n * VL);
    return n % 2 == 0 ? v_even_bf16(words->pairs[n / 2]) : v_odd_bf16(words->pairs[n / 2]);
}

/* Few rows take two vectors of keys at once: FMAs of a chain are serial. */
RAPT_INLINE int turn_vectors(int rows) { return VL == 16 && rows <= 2 ? 2 : 1; }

/* A step of VL or 2 * VL keys: sum += even + odd. */
RAPT_INLINE void turn_step(const char *const *row, const float *query, int64_t byte, vf32 *sum,
                           struct unit_turn_requests *ahead, int rows, int format) {
    const int vectors = turn_vectors(rows);
    const bool quarters = suits_quarters(rows, vectors);
    enum { LINES = VL * RAPT_STEP * 2 / 64 };
    vf32 even[2 * UNIT_ROWS], odd[2 * UNIT_ROWS];
    struct turn_words words[2];
    PLACE_CLEAR(even);
    PLACE_CLEAR(odd);
    for (int square = 0; square < TURN_SQUARES; square++) {
        RAPT_UNROLL for (int v = 0; v < vectors; v++)
            turn_load(&words[v], row + v * VL, byte + square * VL * 4, quarters, format);
        RAPT_UNROLL for (int i = 0; i < VL; i++) {
            const float *at = query + square * 2 * VL + 2 * i;
            if (i * LINES / TURN_SQUARES % VL < LINES / TURN_SQUARES)
                RAPT_UNROLL for (int v = 0; v < vectors; v++)
                    unit_fetch((i + v) % 2 ? &ahead->values : &ahead->keys);
            RAPT_UNROLL for (int v = 0; v < vectors; v++) {
                const vf32 x = turn_number(&words[v], 2 * i, format), y = turn_number(&words[v], 2 * i + 1, format);
                RAPT_UNROLL for (int r = 0; r < rows; r++) {
                    even[r * vectors + v] = v_fma(v_splat(at[r * RAPT_HALF_KEYS]), x, even[r * vectors + v]);
                    odd[r * vectors + v] = v_fma(v_splat(at[r * RAPT_HALF_KEYS + 1]), y, odd[r * vectors + v]);
                }
            }
        }
    }
    RAPT_UNROLL for (int i = 0; i < rows * vectors; i++)
        sum[i] = v_add(sum[i], v_add(even[i], odd[i]));
}

RAPT_INLINE void turn_score(const struct turn_keys *k, int rows, int format) {
    const int vectors = turn_vectors(rows);
    struct unit_turn_requests ahead = *k->ahead;
    for (int key = 0; key < RAPT_STEP; key += vectors * VL) {
        vf32 sum[2 * UNIT_ROWS];
        RAPT_UNROLL for (int i = 0; i < rows * vectors; i++)
            sum[i] = v_splat(-0.0f); /* adding it keeps the other term, even -0 */
        for (int d = 0; d < k->dim; d += RAPT_STEP) {
            const float *query = k->query + (int64_t)(d / RAPT_HALF_KEYS) * k->all_rows * RAPT_HALF_KEYS;
            turn_step(k->row + key, query + d % RAPT_HALF_KEYS, 2 * d, sum, &ahead, rows, format);
        }
        RAPT_UNROLL for (int i = 0; i < rows * vectors; i++)
            v_store(k->c + i / vectors * RAPT_HALF_KEYS + key + i % vectors * VL, sum[i]);
    }
    *k->ahead = ahead;
}

typedef void turn_scorer(const struct turn_keys *k);

#define TURN_KERNELS(height)                                                                             \
    static RAPT_KERNEL void turn_score_bf16_##height(const struct turn_keys *k) {                        \
        if (FLUSHES && height <= UNIT_ROWS)                                                              \
            turn_score(k, height, RAPT_FORMAT_BF16);                                                     \
    }                                                                                                    \
    static RAPT_KERNEL void turn_score_f16_##height(const struct turn_keys *k) {                         \
        if (FLUSHES && height <= UNIT_ROWS)                                                              \
            turn_score(k, height, RAPT_FORMAT_F16);                                                      \
    }
RAPT_HEIGHTS(TURN_KERNELS)
#undef TURN_KERNELS

#define TURN_BF16(height) turn_score_bf16_##height,
#define TURN_F16(height) turn_score_f16_##height,
/* [is float16][height - 1] */
static turn_scorer *const turn_scorers[2][12] = {{RAPT_HEIGHTS(TURN_BF16)}, {RAPT_HEIGHTS(TURN_F16)}};
#undef TURN_BF16
#undef TURN_F16

/* Prefetches of a turn: keys of the next one, and values as far as requests reach; twice that is within the rows listed
 * (PLACE_ALL). */
RAPT_INLINE struct unit_turn_requests turn_ahead(const char *const *keys, const char *const *values, int row_bytes) {
    const int64_t rows = far_rows(row_bytes, false);
    const int far = rows < PLACE_FAR / 2 ? (int)rows : PLACE_FAR / 2;
    return (struct unit_turn_requests){{keys + RAPT_STEP, 0, row_bytes, reach_of(0, far)},
                                       {values + far, 0, row_bytes, reach_of(0, far)}};
}

#endif
