/* SPDX-License-Identifier: MIT */
#ifndef RAPT_BENCHMARKS_ROW_TABLE_H
#define RAPT_BENCHMARKS_ROW_TABLE_H

#include "problem.h"

enum row_kind { ROW_PREFILL, ROW_DECODE, ROW_PEER, ROW_FMA_PEAK, ROW_STREAM_PEAK };

struct row {
    char name[96];
    enum row_kind kind;
    rapt_isa isa;
    int threads;
    struct problem_shape shape; /* attention only */
};

enum { ROW_MAX_COUNT = 256 };

/* Fills rows with all of this machine, in the order to run them; returns how many. */
int row_table(struct row rows[ROW_MAX_COUNT]);

#endif
