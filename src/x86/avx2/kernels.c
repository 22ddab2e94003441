/* SPDX-License-Identifier: MIT */
#include "x86/avx2/simd.h"

#define RAPT_TABLE avx2
#define RAPT_TABLE_ISA RAPT_ISA_AVX2
#include "generic/table.h"
