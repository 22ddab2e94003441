/* SPDX-License-Identifier: MIT
 * Differences between results. */
#ifndef RAPT_COMPARE_H
#define RAPT_COMPARE_H

#include <stdbool.h>

#include "attend/problem.h"
#include "common/options.h"

enum compare_form { COMPARE_TEXT, COMPARE_JSON, COMPARE_QUIET };

/* --check: prints the largest errors against attention in double. False if one exceeds the tolerance; lse and weights,
 * which may be large, are held to it relative to their row's largest number if that is above 1. */
bool compare_with_truth(const struct problem *problem, struct option_number tolerance, enum compare_form form);

/* --expect: a file's numbers; dies if its shape is not the result's. */
const double *compare_load(const char *path, const struct npy_array *result);

/* --expect: the same against them. */
bool compare_with_numbers(const struct problem *problem, const double *expected, struct option_number tolerance,
                          enum compare_form form);

#endif
