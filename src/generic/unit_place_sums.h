/* SPDX-License-Identifier: MIT
 * Order 2 of few rows: chains against keys in a panel that stays in L1, and against values in place. */
#ifndef RAPT_GENERIC_UNIT_PLACE_SUMS_H
#define RAPT_GENERIC_UNIT_PLACE_SUMS_H

#include "generic/unit_numbers.h"

/* Vectors of a wide panel of values; 0: only panels of 2. */
RAPT_INLINE int place_wide(int rows) { return rows == 1 && UNIT_ROWS >= 8 ? 8 : 4 * rows <= UNIT_ROWS ? 4 : 0; }

/* Whether registers hold the sums of even and of odd terms side by side. */
RAPT_INLINE int place_together(int rows, int vectors) { return rows * vectors <= UNIT_ROWS; }

/* Sums of even and odd terms, [rows][vectors] each, to c. */
RAPT_INLINE void place_add(const vf32 *even, const vf32 *odd, float *c, int64_t c_stride, bool adds, int rows,
                           int vectors) {
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        RAPT_UNROLL for (int v = 0; v < vectors; v++) {
            float *into = c + r * c_stride + v * VL;
            const vf32 sum = v_add(even[r * vectors + v], odd[r * vectors + v]);
            v_store(into, adds ? v_add(v_load(into), sum) : sum);
        }
}

#define PLACE_CLEAR(sum)                                    \
    RAPT_UNROLL for (int i = 0; i < rows * vectors; i++)    \
        (sum)[i] = v_splat(0)

/* sum += a * x of all rows. */
#define PLACE_TERM(sum, a, a_stride, x)                                                             \
    RAPT_UNROLL for (int r = 0; r < rows; r++)                                                      \
        RAPT_UNROLL for (int v = 0; v < vectors; v++)                                               \
            (sum)[r * vectors + v] = v_fma(v_splat((a)[r * (a_stride)]), (x)[v], (sum)[r * vectors + v])

/* Scores of a panel, RAPT_STEP dims of it. */
struct place_keys {
    const float *panel, *query; /* [RAPT_STEP][UNIT_COLUMNS], [rows][RAPT_HALF_KEYS] */
    float *c;                   /* [rows][RAPT_HALF_KEYS] */
    bool adds;
};

RAPT_INLINE void place_load_keys(vf32 *x, const float *panel) {
    RAPT_UNROLL for (int v = 0; v < 2; v++)
        x[v] = v_load(panel + v * VL);
}

RAPT_INLINE void place_score(const struct place_keys *k, int rows) {
    enum { vectors = 2 };
    vf32 even[2 * UNIT_ROWS], odd[2 * UNIT_ROWS], x[vectors];
    PLACE_CLEAR(even);
    PLACE_CLEAR(odd);
    if (place_together(rows, vectors)) {
        for (int d = 0; d < RAPT_STEP; d += 2) {
            place_load_keys(x, k->panel + d * UNIT_COLUMNS);
            PLACE_TERM(even, k->query + d, RAPT_HALF_KEYS, x);
            place_load_keys(x, k->panel + (d + 1) * UNIT_COLUMNS);
            PLACE_TERM(odd, k->query + d + 1, RAPT_HALF_KEYS, x);
        }
    } else {
        for (int d = 0; d < RAPT_STEP; d += 2) {
            place_load_keys(x, k->panel + d * UNIT_COLUMNS);
            PLACE_TERM(even, k->query + d, RAPT_HALF_KEYS, x);
        }
        for (int d = 1; d < RAPT_STEP; d += 2) {
            place_load_keys(x, k->panel + d * UNIT_COLUMNS);
            PLACE_TERM(odd, k->query + d, RAPT_HALF_KEYS, x);
        }
    }
    place_add(even, odd, k->c, RAPT_HALF_KEYS, k->adds, rows, vectors);
}

/* Sums of 32 values, some dims. */
struct place_values {
    const char *const *row; /* [RAPT_STEP], and those after them */
    int64_t byte;           /* of the first dim */
    const float *p;         /* [rows][RAPT_HALF_KEYS] */
    float *g;
    int64_t g_stride;
    bool adds;
    struct unit_ahead *ahead; /* prefetched, a line per line read; or, in_turns, */
    struct unit_ahead *keys;  /* in turns with these */
};

/* odd, in_turns: compile-time constants. */
RAPT_INLINE void place_load_values(vf32 *x, const struct place_values *w, int k, int odd, int vectors, int format,
                                   struct unit_turn_requests *ahead, bool in_turns) {
    enum { LINE = 64 };
    const char *row = w->row[k + odd] + w->byte;
    RAPT_UNROLL for (int byte = 0; byte < vectors * VL * 2; byte += LINE)
        if ((w->byte + byte) % LINE == 0) /* once for each line */
            unit_fetch(in_turns && (byte / LINE + odd) % 2 == 0 ? &ahead->keys : &ahead->values);
    RAPT_UNROLL for (int v = 0; v < vectors; v++)
        x[v] = unit_load((const uint16_t *)(const void *)row + v * VL, format);
}

RAPT_INLINE void place_weigh(const struct place_values *w, int rows, int vectors, int format, bool in_turns) {
    vf32 even[4 * UNIT_ROWS], odd[4 * UNIT_ROWS], x[8];
    struct unit_turn_requests ahead = {.values = *w->ahead};
    if (in_turns)
        ahead.keys = *w->keys;
    PLACE_CLEAR(even);
    PLACE_CLEAR(odd);
    if (place_together(rows, vectors)) {
        for (int k = 0; k < RAPT_STEP; k += 2) {
            place_load_values(x, w, k, 0, vectors, format, &ahead, in_turns);
            PLACE_TERM(even, w->p + k, RAPT_HALF_KEYS, x);
            place_load_values(x, w, k, 1, vectors, format, &ahead, in_turns);
            PLACE_TERM(odd, w->p + k + 1, RAPT_HALF_KEYS, x);
        }
    } else {
        for (int k = 0; k < RAPT_STEP; k += 2) {
            place_load_values(x, w, k, 0, vectors, format, &ahead, in_turns);
            PLACE_TERM(even, w->p + k, RAPT_HALF_KEYS, x);
        }
        for (int k = 0; k < RAPT_STEP; k += 2) {
            place_load_values(x, w, k, 1, vectors, format, &ahead, in_turns);
            PLACE_TERM(odd, w->p + k + 1, RAPT_HALF_KEYS, x);
        }
    }
    *w->ahead = ahead.values;
    if (in_turns)
        *w->keys = ahead.keys;
    place_add(even, odd, w->g, w->g_stride, w->adds, rows, vectors);
}

/* Per number of rows; values also per number of vectors (2, 4, or 8 for one row), alone or in turns with keys
 * (place_weigh_block). Those that the table omits are empty. */
#define PLACE_WEIGHERS(height, name, format, in_turns)                                                    \
    static RAPT_KERNEL void place_weigh_##name##_##height##_2(const struct place_values *w) {             \
        if (height <= UNIT_ROWS && (FLUSHES || !in_turns))                                                \
            place_weigh(w, height, 2, format, in_turns);                                                  \
    }                                                                                                     \
    static RAPT_KERNEL void place_weigh_##name##_##height##_wide(const struct place_values *w) {          \
        if (place_wide(height) && (FLUSHES || !in_turns))                                                 \
            place_weigh(w, height, place_wide(height), format, in_turns);                                 \
    }
#define PLACE_KERNELS(height)                                                                            \
    static RAPT_KERNEL void place_score_##height(const struct place_keys *k) {                           \
        if (height <= UNIT_ROWS)                                                                         \
            place_score(k, height);                                                                      \
    }                                                                                                    \
    PLACE_WEIGHERS(height, bf16, RAPT_FORMAT_BF16, false)                                                \
    PLACE_WEIGHERS(height, f16, RAPT_FORMAT_F16, false)                                                  \
    PLACE_WEIGHERS(height, bf16_pair, RAPT_FORMAT_BF16, true)                                            \
    PLACE_WEIGHERS(height, f16_pair, RAPT_FORMAT_F16, true)
RAPT_HEIGHTS(PLACE_KERNELS)
#undef PLACE_KERNELS
#undef PLACE_WEIGHERS

typedef void place_scorer(const struct place_keys *k);
typedef void place_weigher(const struct place_values *w);

#define PLACE_KERNELS(height) place_score_##height,
static place_scorer *const place_scorers[] = {RAPT_HEIGHTS(PLACE_KERNELS)};
#undef PLACE_KERNELS
/* [in turns][is float16][height - 1][wide] */
#define PLACE_BF16(height) {place_weigh_bf16_##height##_2, place_weigh_bf16_##height##_wide},
#define PLACE_F16(height) {place_weigh_f16_##height##_2, place_weigh_f16_##height##_wide},
#define PLACE_BF16_PAIR(height) {place_weigh_bf16_pair_##height##_2, place_weigh_bf16_pair_##height##_wide},
#define PLACE_F16_PAIR(height) {place_weigh_f16_pair_##height##_2, place_weigh_f16_pair_##height##_wide},
static place_weigher *const place_weighers[2][2][12][2] = {
    {{RAPT_HEIGHTS(PLACE_BF16)}, {RAPT_HEIGHTS(PLACE_F16)}},
    {{RAPT_HEIGHTS(PLACE_BF16_PAIR)}, {RAPT_HEIGHTS(PLACE_F16_PAIR)}}};
#undef PLACE_BF16
#undef PLACE_F16
#undef PLACE_BF16_PAIR
#undef PLACE_F16_PAIR

#endif
