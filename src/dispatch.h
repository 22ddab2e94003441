/* SPDX-License-Identifier: MIT
 * Which table of kernels a call runs on. */
#ifndef RAPT_DISPATCH_H
#define RAPT_DISPATCH_H

#include "kernels.h"

/* The table for a requested isa (RAPT_ISA_AUTO: environment, then the best), or a refusal. ASSUME isa is in range. */
rapt_status rapt_dispatch(rapt_isa isa, const struct rapt_table **table, rapt_message *message);

/* Whether an isa means another isa's table with a unit. ASSUME isa is in range. */
bool rapt_isa_is_unit(rapt_isa isa);

/* Whether a call with this isa may use a unit of its table: isa or the environment names the unit, or neither names
 * any and the unit pays off here. ASSUME rapt_dispatch returned RAPT_OK for it. */
bool rapt_isa_takes_unit(rapt_isa isa, rapt_isa unit);

/* The table with the best unit for a type (RAPT_OF_...) that such a call may use here; NULL = none. */
const struct rapt_table *rapt_unit_of(const struct rapt_table *table, rapt_isa isa, int type);

/* The table of an isa (amx: that of avx512), even if this machine lacks the instructions; NULL = not in this build. */
const struct rapt_table *rapt_table_of(rapt_isa isa);

#endif
