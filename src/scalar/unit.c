/* SPDX-License-Identifier: MIT */
#include "scalar/simd.h"

#define RAPT_TABLE scalar
#include "generic/unit_place.h"
