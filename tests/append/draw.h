/* SPDX-License-Identifier: MIT
 * Random calls of rapt_append, memory between guard pages. */
#ifndef RAPT_TESTS_APPEND_DRAW_H
#define RAPT_TESTS_APPEND_DRAW_H

#include "rapt/cache.h"
#include "support/guarded.h"
#include "support/support.h"

enum { DRAWN_MOST_TOKENS = 4096, DRAWN_MOST_BATCH = 8 };

struct drawn {
    rapt_append_desc desc;
    struct guarded from[2], into[2], expected[2]; /* of key and value; `expected` begins as `into` */
    struct guarded scales[2][2], expected_scales[2][2]; /* and zero points, if any */
    bool writes_scales[2];
    int64_t lists[6][DRAWN_MOST_TOKENS]; /* lengths or offsets, positions, slots, rotary positions, pages and their
                                            offsets */
    int32_t narrow[DRAWN_MOST_TOKENS];            /* of one of them */
    float *cosines, *sines, *frequencies;
};

/* large: enough for several threads. */
void drawn_append(struct drawn *drawn, struct random *random, bool large);

/* Restores the caches. */
void drawn_reset(struct drawn *drawn);

/* Writes the expected bytes. */
void drawn_expect(struct drawn *drawn);

/* Whether the caches are as expected, and nothing else was written. */
bool drawn_is_right(const struct drawn *drawn);

void drawn_free(struct drawn *drawn);

/* Any valid rotary embedding of rows of head_dim >= 2; tables have so many positions. */
void drawn_rotary(struct drawn *drawn, struct random *random, int64_t head_dim, int64_t positions);

#endif
