/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit of x86. */
#ifndef RAPT_X86_AMX_KIND_H
#define RAPT_X86_AMX_KIND_H

#include "kernels.h"

/* A table of order 2 whose tiles of many rows are multiplied on the matrix unit, in place of that by chains of FMAs.
 * NULL where this machine has no such unit for bfloat16, this process may not use it, or it answers otherwise than
 * order 2 does. ASSUME chains is always the same. */
const struct rapt_table *rapt_amx_table(const struct rapt_table *chains);

#endif
