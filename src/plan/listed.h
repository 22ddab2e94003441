/* SPDX-License-Identifier: MIT
 * What lists of key blocks mean for the way in which work is cut. */
#ifndef RAPT_LISTED_H
#define RAPT_LISTED_H

#include "plan/plan.h"

/* The share of the keys that lists of key blocks name, as far as the number of their entries tells. There are lists. */
double rapt_listed_share(const rapt_attention_desc *desc);

/* Where blocks of queries have lists of keys, a task takes one of them, or an equal part of it, so that no tile attends
 * to the keys of two lists; unless that fills no tile. Of so many rows of a sequence, `most` at most. */
int64_t rapt_rows_of_lists(const struct rapt_plan_body *attention, int64_t rows, int64_t most, int64_t tile);

#endif
