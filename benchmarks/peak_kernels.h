/* SPDX-License-Identifier: MIT
 *
 * The two loops that bound attention, per instruction set: FMAs on registers alone, and reading memory once. */
#ifndef RAPT_BENCHMARKS_PEAK_KERNELS_H
#define RAPT_BENCHMARKS_PEAK_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEAK_READ_STEP = 1 << 16 };

struct peak_kernels {
    float (*fma)(int64_t rounds);
    double flops_per_round;
    /* NULL = of a matrix unit. Sums bytes (a multiple of PEAK_READ_STEP) of data, as 1, 2, 4 or 8 runs side by side;
     * prefetch_bytes ahead by software, 0 = left to the hardware. */
    uint64_t (*read)(const char *data, size_t bytes, size_t prefetch_bytes, int runs);
};

extern const struct peak_kernels peak_avx2, peak_avx512, peak_avx512_bf16, peak_amx, peak_neon;

#endif
