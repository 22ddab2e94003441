/* SPDX-License-Identifier: MIT
 * Which instructions may be executed: those that the CPU has and the operating system enables; and traits of the CPU
 * that kernels consult but that select no table. */
#ifndef RAPT_CPU_H
#define RAPT_CPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* RAPT_CPU_FEATURE(name) for every feature that rapt knows. */
#if defined(__x86_64__) || defined(__i386__)
#define RAPT_CPU_X86 1
#define RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)                                                        \
    RAPT_CPU_FEATURE(avx) RAPT_CPU_FEATURE(f16c) RAPT_CPU_FEATURE(fma) RAPT_CPU_FEATURE(avx2)      \
    RAPT_CPU_FEATURE(avx512f) RAPT_CPU_FEATURE(avx512dq) RAPT_CPU_FEATURE(avx512bw)                \
    RAPT_CPU_FEATURE(avx512vl) RAPT_CPU_FEATURE(avx512_vbmi) RAPT_CPU_FEATURE(avx512_bf16)         \
    RAPT_CPU_FEATURE(amx_tile) RAPT_CPU_FEATURE(amx_bf16) RAPT_CPU_FEATURE(amx_fp16)
#elif defined(__aarch64__)
#define RAPT_CPU_ARM 1
#define RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)                                                        \
    RAPT_CPU_FEATURE(neon) RAPT_CPU_FEATURE(dotprod) RAPT_CPU_FEATURE(i8mm) RAPT_CPU_FEATURE(bf16) \
    RAPT_CPU_FEATURE(sve)
#else
#define RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)
#endif

/* What loops limited by memory prefetch beside each cache line that they read: a near and a far line. Affects speed
 * only. */
enum rapt_requests {
    RAPT_REQUESTS_FAR_INTO_L2, /* near lines into L1, far ones into L2 */
    RAPT_REQUESTS_NEXT_PAGE, /* as FAR_INTO_L2, but in turns of keys and values the far line is a page after the near
                                one, or equal to it where several heads take turns; if memory cannot keep up, prefetches
                                are spaced out (generic/fetch.h) */
    RAPT_REQUESTS_L1_AT_HAND, /* as NEXT_PAGE, but turns that prefetch no further than the next turn fetch it into L2,
                                 and lines of the current one into L1 */
    RAPT_REQUESTS_FAR_INTO_L1 /* far lines into L1, from where the CPU reads ahead by itself, and near ones into L2;
                                 prefetches for few float32 rows are spaced out, and tiles of few rows, with one
                                 prefetch per line, use L1, too */
};

struct rapt_cpu {
#define RAPT_CPU_FEATURE(name) bool name;
    RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)
#undef RAPT_CPU_FEATURE
    bool detected;
    enum rapt_requests requests;
    bool has_fast_bf16_dots; /* see rapt_has_fast_bf16_dots */
    bool splits_vectors;     /* see rapt_splits_vectors */
    bool loads_halves;       /* see rapt_loads_halves */
};

/* x86/cpu.c, arm/cpu.c: queries the machine, which is slow. Baseline instructions only. */
struct rapt_cpu rapt_cpu_detect(void);

/* enum rapt_requests. Valid after the first dispatch. */
extern atomic_int rapt_requests_here;

static inline enum rapt_requests rapt_cpu_requests(void) {
    return (enum rapt_requests)atomic_load_explicit(&rapt_requests_here, memory_order_relaxed);
}

/* Whether AVX512_BF16 dot products have the throughput of FMAs; if not, chains of FMAs are faster. Valid likewise. */
extern atomic_bool rapt_has_fast_bf16_dots;

static inline bool rapt_cpu_has_fast_bf16_dots(void) {
    return atomic_load_explicit(&rapt_has_fast_bf16_dots, memory_order_relaxed);
}

/* Whether 512-bit vectors execute in halves, so that loads and stores limit kernels. Valid likewise. */
extern atomic_bool rapt_splits_vectors;

static inline bool rapt_cpu_splits_vectors(void) {
    return atomic_load_explicit(&rapt_splits_vectors, memory_order_relaxed);
}

/* Whether kernels limited by arithmetic rather than memory are faster with two half-vector loads than with four
 * quarter-vector loads, despite more shuffles. Valid likewise. */
extern atomic_bool rapt_loads_halves;

static inline bool rapt_cpu_loads_halves(void) {
    return atomic_load_explicit(&rapt_loads_halves, memory_order_relaxed);
}

/* Whether that is so and vectors are whole: shuffles are nearly free beside FMAs there, but stores are not. */
static inline bool rapt_cpu_loads_wide(void) { return rapt_cpu_loads_halves() && !rapt_cpu_splits_vectors(); }

/* Whether AVX-512 kernels may use VBMI. Affects speed only. Valid likewise. */
extern atomic_bool rapt_has_vbmi;

static inline bool rapt_cpu_looks_up_bytes(void) { return atomic_load_explicit(&rapt_has_vbmi, memory_order_relaxed); }

#ifdef RAPT_CPU_X86
/* Whether the matrix unit also multiplies float16. Valid likewise. */
extern atomic_bool rapt_has_amx_fp16;

static inline bool rapt_cpu_has_amx_fp16(void) {
    return atomic_load_explicit(&rapt_has_amx_fp16, memory_order_relaxed);
}

/* Asks the operating system to let this process use the tiles of the matrix unit; returns whether it does. ASSUME
 * amx_tile. The request acts on the whole process (sigaltstack refuses small stacks from then on), so make it only for
 * calls that would use tiles. */
bool rapt_cpu_permits_tiles(void);
#endif

#endif
