/* SPDX-License-Identifier: MIT */
#include "arm/neon/simd.h"

#define RAPT_TABLE neon
#include "generic/unit_place.h"
