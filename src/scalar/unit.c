/* SPDX-License-Identifier: MIT */
#include "scalar/simd.h"

/* The loops over the 16 lanes of l would be half of this code, and no faster: registers do not hold as many. */
#define RAPT_UNROLLED 8

#define RAPT_TABLE scalar
#include "generic/unit_place.h"
