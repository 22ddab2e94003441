/* SPDX-License-Identifier: MIT
 * How compilers are told to treat the loops and functions of kernels. */
#ifndef RAPT_GENERIC_LOOPS_H
#define RAPT_GENERIC_LOOPS_H

/* For loops with constant trip counts: once unrolled, their arrays can stay in registers. */
#ifndef RAPT_UNROLLED
#define RAPT_UNROLLED 32
#endif
#define RAPT_PRAGMA(words) _Pragma(#words)
#define RAPT_UNROLL_BY(turns) RAPT_PRAGMA(GCC unroll turns)
#if defined(RAPT_PLAIN_LOOPS) || !defined(__GNUC__) /* sanitizers would take minutes to compile */
#define RAPT_UNROLL
#define RAPT_UNROLL_4
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop left rolled is only slower */
#define RAPT_UNROLL _Pragma("clang loop unroll(full)")
#define RAPT_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define RAPT_UNROLL RAPT_UNROLL_BY(RAPT_UNROLLED)
#define RAPT_UNROLL_4 RAPT_UNROLL_BY(4)
#endif
/* Hides the origin of a number: the compiler keeps it in a register, and not several derived from it. */
#define RAPT_OPAQUE(number) __asm__("" : "+r"(number))
#define RAPT_INLINE static inline __attribute__((always_inline))
#define RAPT_KERNEL __attribute__((noinline)) /* a symbol of its own for perf and llvm-mca */

/* Row counts with functions of their own. */
#define RAPT_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)

#endif
