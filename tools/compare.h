/* SPDX-License-Identifier: MIT
 * Differences between results. */
#ifndef RAPT_COMPARE_H
#define RAPT_COMPARE_H

#include <stdbool.h>

#include "options.h"
#include "problem.h"

/* --check: prints the largest errors against attention in double. False where that of out exceeds the
 * tolerance. */
bool compare_with_truth(const struct problem *problem, const struct attend_options *options);

/* --expect: the numbers of its file; dies where it is not shaped as the result. */
const double *compare_load(const struct problem *problem, const struct attend_options *options);

/* --expect: likewise against them. */
bool compare_with_file(const struct problem *problem, const struct attend_options *options, const double *expected);

#endif
