/* SPDX-License-Identifier: MIT
 *
 * The body of each peak_<isa>.c, which defines before it:
 *   NAME                        the table
 *   LANES, REGISTERS                       per vector; of the instruction set
 *   vec, BROADCAST, FMA, TOTAL             float32 vectors
 *   ivec, IZERO, ILOAD, IADD, ITOTAL       64-bit integer vectors of the same width
 */
#include "peak_kernels.h"

#include <stdbool.h>

/* Chains hide latency: 12 suffice for 4 cycles on up to three units and fit 16 registers; 32 registers allow 24, for
 * four units and more. */
#define TWELVE_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define TWELVE_MORE(X) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#if REGISTERS >= 32
#define EACH_CHAIN(X) TWELVE_CHAINS(X) TWELVE_MORE(X)
enum { CHAINS = 24, STEPS = 8 };
#else
#define EACH_CHAIN(X) TWELVE_CHAINS(X)
enum { CHAINS = 12, STEPS = 16 };
#endif

static float fma_chains(int64_t rounds) {
    /* Every chain tends to 1: no overflow, no denormals. */
    volatile float opaque = 0.5f;
    vec half = BROADCAST(opaque);
#define DECLARE(i) vec chain##i = BROADCAST(opaque + (float)i);
    EACH_CHAIN(DECLARE)
    for (int64_t round = 0; round < rounds; round++) {
#pragma GCC unroll 16
        for (int step = 0; step < STEPS; step++) {
#define STEP(i) chain##i = FMA(chain##i, half, half);
            EACH_CHAIN(STEP)
        }
    }
    float sum = 0;
#define FINISH(i) sum += TOTAL(chain##i);
    EACH_CHAIN(FINISH)
    return sum;
}

static inline __attribute__((always_inline)) uint64_t read_runs(const char *data, size_t bytes, size_t ahead,
                                                                bool prefetch, int runs) {
    enum { LINE = 64, STEP_BYTES = 256 };
    const size_t run_bytes = bytes / (size_t)runs;
    const int fetched = prefetch ? STEP_BYTES / LINE : 0;
    ivec sums[4] = {IZERO, IZERO, IZERO, IZERO};
    for (size_t at = 0; at < run_bytes; at += STEP_BYTES) {
#pragma GCC unroll 8
        for (int run = 0; run < runs; run++) {
            const char *from = data + (size_t)run * run_bytes + at;
#pragma GCC unroll 4
            for (int line = 0; line < fetched; line++)
                __builtin_prefetch(from + ahead + line * LINE, 0, 3);
#pragma GCC unroll 16
            for (int v = 0; v < STEP_BYTES / (int)sizeof(vec); v++)
                sums[v % 4] = IADD(sums[v % 4], ILOAD(from + v * (int)sizeof(vec)));
        }
    }
    return ITOTAL(sums[0]) + ITOTAL(sums[1]) + ITOTAL(sums[2]) + ITOTAL(sums[3]);
}

static uint64_t read_all(const char *data, size_t bytes, size_t prefetch_bytes, int runs) {
    size_t ahead = prefetch_bytes;
    switch (runs) {
    case 2: return ahead ? read_runs(data, bytes, ahead, true, 2) : read_runs(data, bytes, 0, false, 2);
    case 4: return ahead ? read_runs(data, bytes, ahead, true, 4) : read_runs(data, bytes, 0, false, 4);
    case 8: return ahead ? read_runs(data, bytes, ahead, true, 8) : read_runs(data, bytes, 0, false, 8);
    default: return ahead ? read_runs(data, bytes, ahead, true, 1) : read_runs(data, bytes, 0, false, 1);
    }
}

const struct peak_kernels NAME = {
    .fma = fma_chains,
    .flops_per_round = 2.0 * CHAINS * STEPS * LANES,
    .read = read_all,
};
