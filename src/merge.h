/* SPDX-License-Identifier: MIT
 * The merge phase. */
#ifndef RAPT_MERGE_H
#define RAPT_MERGE_H

#include "plan/work.h"

/* Folds the states of split keys, left to right, and finishes the rows. */
void rapt_merge(const struct rapt_run *run, char *slot, int64_t index);

#endif
