/* SPDX-License-Identifier: MIT */
#ifndef RAPT_TASK_INFO_H
#define RAPT_TASK_INFO_H

#include "attend/task.h"

/* ASSUME index is one of the phase's tasks. Not inlined: fpenv.h. */
__attribute__((noinline)) void rapt_task_describe(const struct rapt_run *run, int32_t phase, int64_t index,
                                                  rapt_task_info *info);

#endif
