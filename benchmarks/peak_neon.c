/* SPDX-License-Identifier: MIT */
#include <arm_neon.h>

#define NAME peak_neon
#define LANES 4
#define REGISTERS 32
typedef float32x4_t vec;
#define BROADCAST vdupq_n_f32
#define FMA(a, b, c) vfmaq_f32(c, a, b)
#define TOTAL vaddvq_f32
typedef uint64x2_t ivec;
#define IZERO vdupq_n_u64(0)
#define ILOAD(from) vld1q_u64((const uint64_t *)(const void *)(from))
#define IADD vaddq_u64
#define ITOTAL vaddvq_u64

#include "peak_body.h"
