/* SPDX-License-Identifier: MIT
 * What lists of key blocks mean for how work is cut. */
#ifndef RAPT_LISTED_H
#define RAPT_LISTED_H

#include "plan/plan.h"

/* The share of the keys that lists of key blocks name, estimated from the number of entries. ASSUME there are lists. */
double rapt_listed_share(const rapt_attention_desc *desc);

/* Rows of a task: at most `most` of a sequence's `rows`. If blocks of queries have lists of keys and are not far
 * smaller than a tile, one block or an equal part of it, so that no tile attends to the keys of two lists. */
int64_t rapt_rows_of_lists(const struct rapt_plan_body *plan, int64_t rows, int64_t most, int64_t tile);

#endif
