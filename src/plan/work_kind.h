/* SPDX-License-Identifier: MIT
 * Which tile kind a sequence gets, and how its rows are cut for it. */
#ifndef RAPT_WORK_KIND_H
#define RAPT_WORK_KIND_H

#include "plan/work.h"

/* Sets the kind of a sequence's work, and what follows from it. */
void rapt_choose_kind(const struct rapt_plan_body *plan, struct rapt_work *work);

/* Sets rows of a task, row blocks and what is staged, for the work's kind. */
void rapt_work_cut_rows(const struct rapt_plan_body *plan, struct rapt_work *work);

#endif
