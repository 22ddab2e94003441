/* SPDX-License-Identifier: MIT */
#ifndef RAPT_BENCHMARKS_ROWS_H
#define RAPT_BENCHMARKS_ROWS_H

#include "memory.h"

struct row_settings {
    const struct arena *arena;
    double seconds; /* per row, at least */
    int min_rounds;
};

typedef bool row_wanted(const char *name);

/* Adds every wanted row and returns how many; settings must stay. */
int rows_add(const struct row_settings *settings, row_wanted *wanted);

#endif
