/* SPDX-License-Identifier: MIT */
#ifndef RAPT_BENCHMARKS_ROW_TABLE_H
#define RAPT_BENCHMARKS_ROW_TABLE_H

#include "workload.h"

enum row_kind {
    ROW_PREFILL,
    ROW_FROM_MEMORY,
    ROW_TINY,
    ROW_LAYER,
    ROW_MIXED,
    ROW_MATMUL,
    ROW_MATMUL_FROM_MEMORY, /* of few rows */
    ROW_APPEND,
    ROW_PEER,
    ROW_FMA_PEAK,
    ROW_STREAM_PEAK
};

/* What a row runs in turns with, beside the peaks. */
enum row_rival {
    RIVAL_NONE,
    RIVAL_ONE_THREAD,
    RIVAL_FULL, /* without the feature */
    RIVAL_CONTIGUOUS, /* without pages */
    RIVAL_HEADS /* the sequences of the batch as KV heads of one */
};

struct row {
    char name[96];
    enum row_kind kind;
    enum row_rival rival;
    rapt_isa isa;
    int threads;
    struct workload_shape shape; /* attention only */
    struct product_shape {       /* matmul only */
        int64_t rows, inner, columns;
        int32_t layout; /* rapt_weight_layout */
    } product;
    struct mixed_shape {         /* mixed only: sequences of both kinds in one call */
        int64_t prefills, prefill_length, decodes, shortest, longest; /* keys of a decode */
    } mixed;
};

/* Each run reads the next region of the arena. */
static inline bool row_is_from_memory(const struct row *row) {
    return row->kind == ROW_FROM_MEMORY || row->kind == ROW_MATMUL_FROM_MEMORY;
}

enum { ROW_MAX_COUNT = 512 };

/* Whose FMA peak the row is compared with: float32's for float32 on matrix units, too. */
rapt_isa row_peak_isa(const struct row *row);

/* Fills rows with all of this machine, in running order; returns how many. */
int row_table(struct row rows[ROW_MAX_COUNT]);

/* Kind and shape as the name says, which ends before isa and threads. */
void row_from_name(struct row *row, const char *name);

#endif
