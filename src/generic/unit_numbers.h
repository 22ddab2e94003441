/* SPDX-License-Identifier: MIT
 * Orders 2 and 3: what all products share. Numbers, their parts and what is found among them; the panel of queries;
 * upcoming rows. */
#ifndef RAPT_GENERIC_UNIT_NUMBERS_H
#define RAPT_GENERIC_UNIT_NUMBERS_H

#include "fpenv.h"
#include "generic/exp2.h"
#include "generic/fetch.h"
#include "generic/stored.h"
#include "internal.h"
#include "kernels.h"

enum {
    UNIT_ROWS = WEIGH_ROWS,         /* of accumulators, against 2 vectors */
    UNIT_COLUMNS = 2 * VL,          /* of a panel of keys or values */
    UNIT_PARTS = 3,                 /* of a number of order 3 */
    UNIT_AHEAD = 16,                /* values prefetched ahead */
    UNIT_HEAD = 16                  /* floats at the start of a panel of queries: the first says what was found */
};

_Static_assert(RAPT_HALF_KEYS % UNIT_COLUMNS == 0, "panels divide the keys of a half");

RAPT_INLINE int unit_up(int count, int to) { return (count + to - 1) / to * to; }

/* Order 3: the parts of a and b to multiply, in order. */
enum { UNIT_SPLIT_SUMS = 6 };
static const uint8_t unit_split_sums[UNIT_SPLIT_SUMS][2] = {{0, 2}, {1, 1}, {0, 1}, {2, 0}, {1, 0}, {0, 0}};

/* Products between two of these are functions of their own: compilers would move arithmetic across. */
RAPT_INLINE void unit_flush(bool on) {
    if (FLUSHES)
        rapt_fpenv_flush(on);
}

/* ------------------------------------------------------------ what is found */

/* Of numbers seen so far: NaN if one is not finite; the least magnitude but 0. */
struct unit_found {
    vf32 nonfinite, least;
};

RAPT_INLINE struct unit_found unit_nothing_found(void) {
    return (struct unit_found){v_splat(0), v_splat(RAPT_INFINITY)};
}

/* A denormal number counts as zero of its sign: bfloat16 only, since widened float16 has none. */
RAPT_INLINE vf32 unit_look(struct unit_found *found, vf32 x, int format) {
    found->nonfinite = v_fma(x, v_splat(0), found->nonfinite); /* NaN after infinities and NaN */
    if (FLUSHES || format == RAPT_FORMAT_F16)
        return x;
    const vf32 size = v_abs(x);
    const vf32 flushed = v_select(v_less(size, v_splat(0x1p-126f)), v_with_sign(v_splat(0), x), x);
    found->least = v_smaller(v_select(v_equal(flushed, v_splat(0)), v_splat(RAPT_INFINITY), size), found->least);
    return flushed;
}

/* Order 3: a number in bfloat16, then the remainder, then that of the remainder. */
RAPT_INLINE void unit_split(vf32 x, vf32 parts[UNIT_PARTS], struct unit_found *found) {
    RAPT_UNROLL for (int i = 0; i < UNIT_PARTS; i++) {
        const vf32 part = v_select(v_less(v_abs(x), v_splat(0x1p-126f)), v_splat(0), v_round_bf16(x));
        x = v_sub(x, part);
        parts[i] = unit_look(found, part, RAPT_FORMAT_BF16);
    }
}

/* Products of numbers of 8 bits that are at least 2^-56 are multiples of 2^-126, and so are their sums; probabilities
 * are multiples of 2^-55. */
RAPT_INLINE unsigned unit_finds(const struct unit_found *found, float least) {
    const bool finite = !v_any(v_not(v_equal(found->nonfinite, found->nonfinite)));
    const bool normal = !v_any(v_less(found->least, v_splat(least)));
    return (finite ? RAPT_FOUND_FINITE : 0u) | (normal ? RAPT_FOUND_NORMAL : 0u);
}

RAPT_INLINE vf32 unit_load(const uint16_t *p, int format) {
    return format == RAPT_FORMAT_F16 ? v_load_f16(p) : v_load_bf16(p);
}

RAPT_INLINE int unit_bytes(int format) { return format == RAPT_FORMAT_F32 ? 4 : 2; }
RAPT_INLINE int unit_parts(int format) { return format == RAPT_FORMAT_F32 ? UNIT_PARTS : 1; }

/* ------------------------------------------------------------ queries */

/* The lanes of l of a row; and where the queries begin, as [dims / 128][rows][128]. */
RAPT_INLINE float *unit_lanes(float *panel, int row) { return panel + UNIT_HEAD + row * RAPT_SUM_LANES; }

RAPT_INLINE float *unit_queries(float *panel, int rows) {
    return panel + UNIT_HEAD + unit_up(rows, UNIT_ROWS) * RAPT_SUM_LANES;
}

/* Stride of the parts of queries. */
RAPT_INLINE int64_t unit_query_part(int rows, int head_dim) {
    return (int64_t)unit_up(rows, UNIT_ROWS) * unit_up(head_dim, RAPT_HALF_KEYS);
}

/* ------------------------------------------------------------ next rows */

static const float unit_zeros[RAPT_MAX_HEAD_DIM + RAPT_STEP];

/* The next rows, line by line; reach: in rows. */
struct unit_ahead {
    const char *const *row; /* and those after it */
    int byte, row_bytes;
    struct reach reach;
};

RAPT_INLINE void unit_fetch(struct unit_ahead *ahead) {
    const char *const *row = ahead->row + ahead->reach.l1;
    fetch_soon(row[0] + ahead->byte);
    fetch_later(row[ahead->reach.l2] + ahead->byte);
    ahead->byte += 64;
    if (ahead->byte >= ahead->row_bytes)
        ahead->byte = 0, ahead->row++;
}

/* Those of keys and of values that take turns. */
struct unit_turn_requests {
    struct unit_ahead keys, values;
};

#endif
