/* SPDX-License-Identifier: MIT
 * Which table of kernels a call runs on. */
#ifndef RAPT_DISPATCH_H
#define RAPT_DISPATCH_H

#include "kernels.h"

/* The table for a requested isa (RAPT_ISA_AUTO: environment, then the best), or a refusal. */
rapt_status rapt_dispatch(rapt_isa isa, const struct rapt_table **table, rapt_message *message);

/* Whether an instruction set stands for the table of another with a unit. ASSUME there is such an isa. */
bool rapt_isa_is_unit(rapt_isa isa);

/* Whether a call with this isa may use a unit of its table: it or the environment names the unit, or neither names
 * anything and the unit pays here. ASSUME rapt_dispatch returned RAPT_OK for it. */
bool rapt_isa_takes_unit(rapt_isa isa, rapt_isa unit);

/* A table with the best unit for a type (RAPT_OF_...) that such a call may use and this machine has; NULL = none. */
const struct rapt_table *rapt_unit_of(const struct rapt_table *table, rapt_isa isa, int type);

/* The table of an instruction set (amx: that of avx512), NULL where this build lacks it. Does not ask whether the
 * machine has the instructions. */
const struct rapt_table *rapt_table_of(rapt_isa isa);

#endif
