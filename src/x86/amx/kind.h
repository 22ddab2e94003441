/* SPDX-License-Identifier: MIT
 * Orders 2 and 3 on the matrix unit of x86. */
#ifndef RAPT_X86_AMX_KIND_H
#define RAPT_X86_AMX_KIND_H

#include "kernels.h"

/* struct rapt_unit: all tiles are multiplied on the matrix unit, but in order 2 those of one or two rows of long keys.
 * ASSUME chains is always the same for a type. */
const struct rapt_table *rapt_amx_table(const struct rapt_table *chains, int type);

/* Of float16, which fewer units multiply. */
const struct rapt_table *rapt_amx_table_of_f16(const struct rapt_table *chains);

#endif
