/* SPDX-License-Identifier: MIT
 * Which word attends to which, as a table for a terminal of 80 columns. */
#ifndef RAPT_SHOW_H
#define RAPT_SHOW_H

#include "attend/problem.h"
#include "layer/tokens.h"

/* The lines of options->tokens; dies if they do not fit the keys, or the head or sequence does not exist. ASSUME the
 * problem's lengths are valid. */
struct token_list show_load(const struct problem *problem, const struct attend_options *options);

/* Prints, for each query of a head, the keys with the largest weights. */
void show_print(const struct problem *problem, const struct attend_options *options,
                struct token_list tokens);

#endif
