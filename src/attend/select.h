/* SPDX-License-Identifier: MIT
 * Which keys trees and lists of key blocks let a query see (tree_masks and key_blocks of the descriptor). They are read
 * while tasks run, and any thread may change them: whatever they hold, nothing out of bounds is touched. */
#ifndef RAPT_SELECT_H
#define RAPT_SELECT_H

#include "attend/task.h"

/* Whether trees or lists may exclude any of these positions. */
bool rapt_selects_among(const struct rapt_task *task, struct rapt_span keys);

/* Whether two queries select the same of these positions. Queries are numbers in their sequence. */
bool rapt_selects_alike(const struct rapt_task *task, int64_t query, int64_t other, struct rapt_span keys);

/* bytes[position - base]: 1 where the query sees the key, 0 where not, for all positions of keys. */
void rapt_select(const struct rapt_task *task, int64_t query, int64_t base, struct rapt_span keys, uint8_t *bytes);

/* The first block at or after base with a key of visible that the list of some query of the task names; -1 = none. */
int64_t rapt_next_listed(const struct rapt_task *task, struct rapt_span visible, int64_t base);

static inline int64_t rapt_next_selected(const struct rapt_task *task, struct rapt_span visible, int64_t base) {
    return task->plan->desc.key_blocks.query_tokens ? rapt_next_listed(task, visible, base)
                                                    : rapt_next_block(visible, base);
}

#endif
