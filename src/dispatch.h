/* SPDX-License-Identifier: MIT
 * Which table of kernels a call runs on. */
#ifndef RAPT_DISPATCH_H
#define RAPT_DISPATCH_H

#include "kernels.h"

/* The table for a requested isa (RAPT_ISA_AUTO: environment, then the best), or a refusal. */
rapt_status rapt_dispatch(rapt_isa isa, const struct rapt_table **table, rapt_message *message);

/* Whether neither the call nor the environment names an instruction set. */
bool rapt_isa_is_open(rapt_isa isa);

/* The table of an instruction set, NULL where this build lacks it. Does not ask whether the machine has the
 * instructions. */
const struct rapt_table *rapt_table_of(rapt_isa isa);

#endif
