/* SPDX-License-Identifier: MIT
 * Turns of keys and values: the keys of a block are scored beside the values of the one before it. KV heads whose rows
 * lie side by side, token by token, take turns with each other as well, since memory is faster in address order. */
#ifndef RAPT_TURNS_H
#define RAPT_TURNS_H

#include "plan/plan.h"

/* Whether tasks of a work with so many rows take turns: alone (heads = 1), or those of so many heads together. */
bool rapt_takes_turns(const struct rapt_plan_body *plan, const struct rapt_work *work, int64_t rows, int64_t heads);

/* The same for cutting work, by what was known of the data at planning: a binding may make values a view of the keys,
 * or undo that, but must not change how the plan cut sequences with lists. */
bool rapt_plans_turns(const struct rapt_plan_body *plan, const struct rapt_work *work, int64_t rows, int64_t heads);

/* Whether KV heads of the kind may take turns. */
static inline bool rapt_has_heads_in_turns(const struct rapt_tile_kind *kind) {
    return kind->score_beside || kind->step_turn_keys || kind->block_turn_rows;
}

/* How many KV heads take turns with each other, a divisor of kv_heads; 1 = none. By what was known at planning. */
int32_t rapt_heads_in_turns(const struct rapt_plan_body *plan, const struct rapt_work *work);

#endif
