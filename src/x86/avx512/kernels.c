/* SPDX-License-Identifier: MIT */
#include "x86/avx512/simd.h"

#define RAPT_TABLE avx512
#define RAPT_TABLE_ISA RAPT_ISA_AVX512
#include "generic/table.h"
