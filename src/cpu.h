/* SPDX-License-Identifier: MIT
 * Which instructions may be executed here: what the CPU has and the operating
 * system lets programs use; and what kernels ask of it that no table stands for. */
#ifndef RAPT_CPU_H
#define RAPT_CPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* RAPT_CPU_FEATURE(name): every feature that rapt knows. */
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

/* How a processor wants memory requested by loops that it feeds: two lines at each, a near and a far one. Only the
 * speed depends on it. */
enum rapt_requests {
    RAPT_REQUESTS_FAR_INTO_L2,
    RAPT_REQUESTS_NEXT_PAGE, /* the same, but in turns of keys and values the far one is a page after the near one, or
                                the same where several heads take turns, and where memory cannot keep up, requests come
                                one by one (generic/fetch.h) */
    RAPT_REQUESTS_L1_AT_HAND, /* likewise, but where turns request no more than the next one, it goes into L2, and
                                 lines of the one at hand into L1 */
    RAPT_REQUESTS_FAR_INTO_L1 /* where it reads on by itself then; few rows of float32 are requested one by one, and
                                 tiles of few rows, which make one request at each, make it into L1, too */
};

struct rapt_cpu {
#define RAPT_CPU_FEATURE(name) bool name;
    RAPT_CPU_FEATURES(RAPT_CPU_FEATURE)
#undef RAPT_CPU_FEATURE
    bool detected;
    enum rapt_requests requests;
    bool multiplies_pairs; /* see rapt_multiplies_pairs */
    bool splits_vectors;   /* see rapt_splits_vectors */
    bool loads_halves;     /* see rapt_loads_halves */
};

/* x86/cpu.c, arm/cpu.c: asks the machine, slowly. Executes baseline instructions only. */
struct rapt_cpu rapt_cpu_detect(void);

/* enum rapt_requests. Known from the first call of dispatch on. */
extern atomic_int rapt_requests_here;

static inline enum rapt_requests rapt_cpu_requests(void) {
    return (enum rapt_requests)atomic_load_explicit(&rapt_requests_here, memory_order_relaxed);
}

/* Whether dot products of AVX512_BF16 start as often as FMAs, without which chains of these are faster: likewise. */
extern atomic_bool rapt_multiplies_pairs;

static inline bool rapt_cpu_multiplies_pairs(void) {
    return atomic_load_explicit(&rapt_multiplies_pairs, memory_order_relaxed);
}

/* Whether vectors of 512 bits are worked on by halves, so that loads and stores are what limits kernels: likewise. */
extern atomic_bool rapt_splits_vectors;

static inline bool rapt_cpu_splits_vectors(void) {
    return atomic_load_explicit(&rapt_splits_vectors, memory_order_relaxed);
}

/* Whether kernels that wait for products rather than for memory are faster with two loads of half a vector than with
 * four of quarters, though that leaves more to shuffle: likewise. */
extern atomic_bool rapt_loads_halves;

static inline bool rapt_cpu_loads_halves(void) {
    return atomic_load_explicit(&rapt_loads_halves, memory_order_relaxed);
}

/* Whether kernels of AVX-512 may use VBMI: known likewise, and only the speed depends on it. */
extern atomic_bool rapt_has_vbmi;

static inline bool rapt_cpu_looks_up_bytes(void) { return atomic_load_explicit(&rapt_has_vbmi, memory_order_relaxed); }

#ifdef RAPT_CPU_X86
/* Whether the matrix unit multiplies float16, too: known likewise. */
extern atomic_bool rapt_multiplies_halves;

static inline bool rapt_cpu_multiplies_halves(void) {
    return atomic_load_explicit(&rapt_multiplies_halves, memory_order_relaxed);
}

/* Whether the operating system lets this process use the tiles of the matrix unit, for which it has to be asked.
 * ASSUME amx_tile. The request acts on the whole process (sigaltstack refuses small stacks from then on), so it is made
 * only for calls that would use tiles. */
bool rapt_cpu_permits_tiles(void);
#endif

#endif
