/* SPDX-License-Identifier: MIT */
#include "x86/avx2/simd.h"

#define RAPT_TABLE avx2
#include "generic/unit_place.h"
