/* SPDX-License-Identifier: MIT
 * The largest of many errors, for tests with tolerances. */
#ifndef RAPT_TESTS_ERRORS_H
#define RAPT_TESTS_ERRORS_H

#include <math.h>

/* The larger of the largest so far and the next. A NaN stays, whatever follows, so that it exceeds every tolerance. */
static inline double larger_error(double so_far, double error) {
    return isnan(so_far) || error <= so_far ? so_far : error;
}

#endif
