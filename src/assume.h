/* SPDX-License-Identifier: MIT
 * RAPT_ASSUME: what the caller of an internal function must ensure. Debug and sanitizer builds check it, release
 * builds trust it. What users hand in is refused by validate.c. */
#ifndef RAPT_ASSUME_H
#define RAPT_ASSUME_H

#ifdef RAPT_ASSERTIONS
#include <assert.h>
#define RAPT_ASSUME(condition) assert(condition)
#else
#define RAPT_ASSUME(condition) ((void)0)
#endif

#endif
