/* SPDX-License-Identifier: MIT */
#include "scalar/simd.h"

#define RAPT_TABLE scalar
#include "generic/table.h"
