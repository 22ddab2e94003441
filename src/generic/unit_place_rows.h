/* SPDX-License-Identifier: MIT
 * Order 2 of few rows: where the keys and values of a block lie. */
#ifndef RAPT_GENERIC_UNIT_PLACE_ROWS_H
#define RAPT_GENERIC_UNIT_PLACE_ROWS_H

#include "generic/unit_half.h"

enum {
    PLACE_NEAR = 16,          /* rows prefetched into L1, and */
    PLACE_FAR = 96,           /* into L2 */
    PLACE_ALL = RAPT_BLOCK_KEYS + PLACE_FAR
};

/* Rows of keys or values from position 0 of a block on. */
struct place_side {
    const char *row[PLACE_ALL]; /* absent rows are zeros */
    int format, dim;
};

static void place_find(struct place_side *side, const struct rapt_block *b, int i) {
    const struct rapt_plan_body *plan = b->task->plan;
    const int64_t end = b->source->visible.end - b->base;
    const int last = end < PLACE_ALL ? (int)end : PLACE_ALL;
    for (int k = 0; k < b->key_begin; k++)
        side->row[k] = (const char *)unit_zeros;
    for (int k = last; k < PLACE_ALL; k++)
        side->row[k] = (const char *)unit_zeros;
    side->format = plan->format[i];
    side->dim = (int)rapt_dim_of(plan, i);
    rapt_source_find(b->task, i, (struct rapt_span){b->base + b->key_begin, b->base + last}, side->row + b->key_begin);
}

/* Where there is nothing to prefetch. */
static struct unit_ahead place_idle(void) {
    static const char *const at_hand[] = {(const char *)unit_zeros};
    return (struct unit_ahead){at_hand, 0, 1 << 30, {0, 0}};
}

#endif
