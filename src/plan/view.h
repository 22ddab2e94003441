/* SPDX-License-Identifier: MIT
 * Values that are a view of the keys, as in latent attention: what is read or widened of a key is there for its value,
 * too. */
#ifndef RAPT_VIEW_H
#define RAPT_VIEW_H

#include "plan/plan.h"

/* Which number of each key's row is the first of its value, in values_in_keys; -1 = values lie elsewhere. To be called
 * when data or strides have changed. */
void rapt_find_view(struct rapt_plan_body *attention);

#endif
