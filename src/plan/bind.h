/* SPDX-License-Identifier: MIT
 * Other memory for a plan. */
#ifndef RAPT_BIND_H
#define RAPT_BIND_H

#include "plan/plan.h"

/* All of it or, with a refusal, nothing. Not inlined: it computes in the
 * floating-point environment that the caller has set. */
__attribute__((noinline)) rapt_status rapt_bind(struct rapt_plan_body *attention, const rapt_bindings *bindings,
                                                rapt_message *message);

#endif
