/* SPDX-License-Identifier: MIT */
#include "scalar/simd.h"

#define RAPT_TABLE scalar
#define RAPT_TABLE_ISA RAPT_ISA_SCALAR
#include "generic/table.h"
