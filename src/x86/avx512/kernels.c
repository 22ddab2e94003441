/* SPDX-License-Identifier: MIT */
#include "x86/amx/kind.h"
#include "x86/avx512/simd.h"
#include "x86/bf16/kind.h"

static const struct rapt_unit units[] = {
    {RAPT_ISA_AMX, rapt_amx_table}, {RAPT_ISA_AVX512_BF16, rapt_bf16_table}, {RAPT_ISA_AUTO, NULL}};

#define RAPT_TABLE avx512
#define RAPT_UNITS units
#include "generic/table.h"
