/* SPDX-License-Identifier: MIT
 * Order 2 of float16 on the matrix unit of x86. */
#define UNIT16_IS_F16 1
#include "x86/avx512/simd.h"

#include "x86/amx/kinds.h"

const struct rapt_table *rapt_amx_table_of_f16(const struct rapt_table *chains) {
    static struct unit16_once once;
    return unit16_once(&once, chains, add_tiles);
}
