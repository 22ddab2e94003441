/* SPDX-License-Identifier: MIT */
#include "arm/neon/simd.h"

#define RAPT_TABLE neon
#define RAPT_TABLE_ISA RAPT_ISA_NEON
#include "generic/table.h"
