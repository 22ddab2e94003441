/* SPDX-License-Identifier: MIT
 * Order 2 of bfloat16 by the dot products of AVX512_BF16. */
#ifndef RAPT_X86_BF16_KIND_H
#define RAPT_X86_BF16_KIND_H

#include "kernels.h"

/* struct rapt_unit: tiles of many rows are multiplied by VDPBF16PS, which takes twice as many terms as an FMA. ASSUME
 * chains is always the same. */
const struct rapt_table *rapt_bf16_table(const struct rapt_table *chains, int type);

#endif
