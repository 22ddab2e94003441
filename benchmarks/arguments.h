/* SPDX-License-Identifier: MIT */
#ifndef RAPT_BENCHMARKS_ARGUMENTS_H
#define RAPT_BENCHMARKS_ARGUMENTS_H

#include <stdbool.h>

struct arguments {
    int count;
    char *values[64]; /* for Google Benchmark */
    double seconds;
    const char *filter;
    bool list;
};

extern struct arguments arguments;

/* Exits on --help and on wrong usage. */
void arguments_parse(int argc, char **argv);

/* Whether to run a row of this name; prints it if the list is requested. */
bool arguments_want(const char *name);

#endif
