/* SPDX-License-Identifier: MIT */
#include "scalar/simd.h"

/* Unrolled loops over the 16 lanes of l would be most of this code, and no faster: registers hold fewer. */
#define RAPT_UNROLLED 8

#define RAPT_TABLE scalar
#include "generic/unit_place.h"
