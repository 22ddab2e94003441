/* SPDX-License-Identifier: MIT
 * Random calls of rapt_append, their memory between pages that cannot be touched. */
#ifndef RAPT_TESTS_APPEND_DRAW_H
#define RAPT_TESTS_APPEND_DRAW_H

#include "rapt/cache.h"
#include "support/guarded.h"
#include "support/support.h"

enum { DRAWN_MOST_TOKENS = 4096, DRAWN_MOST_BATCH = 8 };

struct drawn {
    rapt_append_desc desc;
    struct guarded from[2], into[2], expected[2]; /* of key and value; what is expected begins as into */
    struct guarded scales[2][2], expected_scales[2][2]; /* and zero points, where there are any */
    bool writes_scales[2];
    int64_t lists[6][DRAWN_MOST_TOKENS]; /* lengths or offsets, positions, slots, rotary positions, pages and their
                                            offsets */
    int32_t narrow[DRAWN_MOST_TOKENS];            /* of one of them */
    float *cosines, *sines, *frequencies;
};

/* large: enough for several threads. */
void drawn_append(struct drawn *drawn, struct random *random, bool large);

/* Caches as they were. */
void drawn_reset(struct drawn *drawn);

/* Writes what is expected. */
void drawn_expect(struct drawn *drawn);

/* Whether the caches are what is expected, and nothing beside them was written. */
bool drawn_is_right(const struct drawn *drawn);

void drawn_free(struct drawn *drawn);

/* Any legal rotary embedding of rows of head_dim >= 2; tables have so many positions. */
void drawn_rotary(struct drawn *drawn, struct random *random, int64_t head_dim, int64_t positions);

#endif
