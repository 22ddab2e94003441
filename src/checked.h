/* SPDX-License-Identifier: MIT
 * int64 arithmetic that detects overflow: true if the result fits. */
#ifndef RAPT_CHECKED_H
#define RAPT_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool rapt_add_fits(int64_t a, int64_t b, int64_t *sum) {
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool rapt_mul_fits(int64_t a, int64_t b, int64_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

#endif
