/* SPDX-License-Identifier: MIT
 * Other memory for a plan. */
#ifndef RAPT_BIND_H
#define RAPT_BIND_H

#include "plan/plan.h"

/* Binds all or, on a refusal, nothing. Not inlined: fpenv.h. */
__attribute__((noinline)) rapt_status rapt_bind(struct rapt_plan_body *plan, const rapt_bindings *bindings,
                                                rapt_message *message);

#endif
