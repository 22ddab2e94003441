/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit of x86. */
#ifndef RAPT_X86_AMX_KIND_H
#define RAPT_X86_AMX_KIND_H

#include "kernels.h"

/* struct rapt_unit: all tiles but those of one or two rows are multiplied on the matrix unit. ASSUME chains is always
 * the same. */
const struct rapt_table *rapt_amx_table(const struct rapt_table *chains);

#endif
