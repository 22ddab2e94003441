/* SPDX-License-Identifier: MIT */
#include "x86/avx512/simd.h"

#define RAPT_TABLE avx512
#include "generic/unit_place.h"
