/* SPDX-License-Identifier: MIT
 * Values that are a view of the keys, as in latent attention: what is read or widened of a key serves its value,
 * too. */
#ifndef RAPT_VIEW_H
#define RAPT_VIEW_H

#include "plan/plan.h"

/* Sets values_in_keys: the index in each key at which its value begins; -1 = values lie elsewhere. Call it when data or
 * strides have changed. */
void rapt_find_view(struct rapt_plan_body *plan);

#endif
