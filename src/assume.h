/* SPDX-License-Identifier: MIT
 * RAPT_ASSUME: what the caller of an internal function must ensure. Debug and sanitizer builds check it; release
 * builds and clang's analyzer trust it. User input is checked in validate/ instead. */
#ifndef RAPT_ASSUME_H
#define RAPT_ASSUME_H

#ifdef RAPT_ASSERTIONS
#include <assert.h>
#define RAPT_ASSUME(condition) assert(condition)
#elif defined(__clang_analyzer__)
#define RAPT_ASSUME(condition) ((condition) ? (void)0 : __builtin_unreachable())
#else
#define RAPT_ASSUME(condition) ((void)0)
#endif

#endif
