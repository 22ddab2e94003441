/* SPDX-License-Identifier: MIT */
#include "x86/amx/kind.h"
#include "x86/avx512/simd.h"

#define RAPT_TABLE avx512
#define RAPT_MATRIX_UNIT rapt_amx_table
#include "generic/table.h"
