/* SPDX-License-Identifier: MIT
 * Which keys are visited: those that sequence.h shows by position, as far as masks leave them. The loop, the source of
 * keys and prefetching all ask here. */
#ifndef RAPT_VISIT_H
#define RAPT_VISIT_H

#include "attend/task.h"

enum rapt_seen {
    RAPT_SEES_NOTHING, /* skip the block */
    RAPT_SEES_ALL,     /* each row attends to each key of the span */
    RAPT_SEES_SOME     /* each row to those that the mask allows */
};

/* What the rows [first, first + rows) of a task see of the block at base: the first and the last key that matter, which
 * of those between (mask->selected), and what acts on them. The rows see at most `visible`. */
enum rapt_seen rapt_visit(const struct rapt_task *task, int first, int rows, struct rapt_span visible, int64_t base,
                          struct rapt_span *keys, struct rapt_tile_mask *mask);

/* The places of keys of the block at base that the rows will attend to, as far as masks tell beforehand; returns how
 * many. Overwrites what rapt_visit left in the task. */
int rapt_visit_ahead(const struct rapt_task *task, int first, int rows, struct rapt_span visible, int64_t base,
                     uint8_t place[RAPT_BLOCK_KEYS]);

/* What acts on those keys, without looking into masks. */
void rapt_visit_mask(const struct rapt_task *task, int first, int rows, int64_t base, struct rapt_span keys,
                     struct rapt_tile_mask *mask);

/* The numbers of the keys for slots: half open. */
static inline int rapt_first_number(const struct rapt_tile_mask *mask, int64_t base, struct rapt_span keys) {
    return mask->selected ? 0 : (int)(keys.begin - base);
}

static inline int rapt_end_number(const struct rapt_tile_mask *mask, int64_t base, struct rapt_span keys) {
    return mask->selected ? mask->selected : (int)(keys.end - base);
}

/* Whether a pair takes part; keys have slots' numbers. For paths that NaN and infinity force to check single pairs. */
static inline bool rapt_is_attended(const struct rapt_tile_mask *mask, int row, int key) {
    const unsigned parts = mask->parts;
    if ((parts & RAPT_PART_SPANS) && (key < mask->spans.first_key[row] || key >= mask->spans.end_key[row]))
        return false;
    if (rapt_mask_excludes(parts) && mask->mask[row][key] == 0)
        return false;
    if ((parts & RAPT_PART_SELECT) && mask->select[row][key] == 0)
        return false;
    return !(parts & RAPT_PART_BIAS) || mask->bias[row][key] != -__builtin_inff();
}

#endif
