/* SPDX-License-Identifier: MIT
 * The floating-point environment that the numeric order assumes: round to
 * nearest even, no flushing of denormals, no traps, whatever the caller or a
 * library loaded before has set.
 *
 *     const rapt_fpenv saved = rapt_fpenv_enter();
 *     compute();
 *     rapt_fpenv_leave(saved);
 *
 * rapt_fpenv_leave restores the caller's registers, sticky flags included.
 * ASSUME compute is never inlined, not even by link-time optimisation: nothing
 * else keeps the compiler from moving float operations across these two. */
#ifndef RAPT_FPENV_H
#define RAPT_FPENV_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__SSE__)

typedef struct rapt_fpenv {
    uint32_t mxcsr;
} rapt_fpenv;

static inline rapt_fpenv rapt_fpenv_enter(void) {
    const uint32_t normal = 0x1F80; /* all exceptions masked, nearest even, no FTZ, no DAZ, no flags */
    rapt_fpenv saved;
    __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=&m"(saved.mxcsr) : "m"(normal) : "memory");
    return saved;
}

static inline void rapt_fpenv_leave(rapt_fpenv saved) {
    __asm__ volatile("ldmxcsr %0" : : "m"(saved.mxcsr) : "memory");
}

/* Between enter and leave: whether denormals flush to zero, as in matrix units (numerics.md, order 2). */
static inline void rapt_fpenv_flush(bool on) {
    const uint32_t mxcsr = on ? 0x9FC0 : 0x1F80;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
}

#elif defined(__aarch64__)

/* ARM flushes before rounding, which order 2 does not. */
static inline void rapt_fpenv_flush(bool on) { (void)on; }

typedef struct rapt_fpenv {
    uint64_t fpcr, fpsr;
} rapt_fpenv;

static inline rapt_fpenv rapt_fpenv_enter(void) {
    const uint64_t normal = 0; /* nearest even, no FZ, DN, AHP, traps */
    rapt_fpenv saved;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=&r"(saved.fpcr), "=&r"(saved.fpsr) : : "memory");
    if (saved.fpcr != normal) /* writing is slow on some cores */
        __asm__ volatile("msr fpcr, %0" : : "r"(normal) : "memory");
    return saved;
}

static inline void rapt_fpenv_leave(rapt_fpenv saved) {
    if (saved.fpcr != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"(saved.fpcr) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(saved.fpsr) : "memory");
}

#else

static inline void rapt_fpenv_flush(bool on) { (void)on; }

typedef struct rapt_fpenv {
    int unused;
} rapt_fpenv;

static inline rapt_fpenv rapt_fpenv_enter(void) {
    const rapt_fpenv nothing = {0};
    return nothing;
}

static inline void rapt_fpenv_leave(rapt_fpenv saved) { (void)saved; }

#endif
#endif
