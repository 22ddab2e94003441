/* SPDX-License-Identifier: MIT
 * How compilers are told to treat the loops and functions of kernels. */
#ifndef RAPT_GENERIC_LOOPS_H
#define RAPT_GENERIC_LOOPS_H

/* Loops whose turns the compiler knows: what they hold stays in registers, as far as there are so many. */
#ifndef RAPT_UNROLLED
#define RAPT_UNROLLED 32
#endif
#define RAPT_PRAGMA(words) _Pragma(#words)
#define RAPT_UNROLL_BY(turns) RAPT_PRAGMA(GCC unroll turns)
#if defined(RAPT_PLAIN_LOOPS) || !defined(__GNUC__) /* for sanitizers, whose compilation would take minutes */
#define RAPT_UNROLL
#define RAPT_UNROLL_4
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop that stays as it is, is only slower */
#define RAPT_UNROLL _Pragma("clang loop unroll(full)")
#define RAPT_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define RAPT_UNROLL RAPT_UNROLL_BY(RAPT_UNROLLED)
#define RAPT_UNROLL_4 RAPT_UNROLL_BY(4)
#endif
/* The compiler forgets where this number comes from, and keeps it in a register instead of some that it derives. */
#define RAPT_OPAQUE(number) __asm__("" : "+r"(number))
#define RAPT_INLINE static inline __attribute__((always_inline))
#define RAPT_KERNEL __attribute__((noinline)) /* a symbol of its own for perf and llvm-mca */

#endif
