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

/* --expect: likewise against a file. */
bool compare_with_file(const struct problem *problem, const struct attend_options *options);

#endif
