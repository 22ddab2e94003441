/* SPDX-License-Identifier: MIT
 *
 * What rows report. */
#ifndef RAPT_BENCHMARKS_ROW_REPORT_H
#define RAPT_BENCHMARKS_ROW_REPORT_H

#include "harness.h"
#include "peaks.h"
#include "row_table.h"

/* What is measured beside one row. */
struct row_run {
    struct workload workload, rival_workload;
    struct contender subject, rival;
    struct fma_peak fma_peak;
    struct stream_peak stream_peak;
};

/* Why a row did not start: RAPT_OK if the machine has too little memory, which is no failure. */
void report_refusal(struct bench_state *state, rapt_status status, const char *why);

/* After the figures: a failed row has none, nor has one whose rival failed. */
void report_failure(struct bench_state *state, rapt_status subject, rapt_status rival);

void report_time(struct bench_state *state, const struct contender *contender);

/* Rates of the subject, which did the workload's work, and ratios to both peaks. */
void report_rates(struct bench_state *state, const struct row *row, const struct row_run *run);

/* The remark, which may be empty, and whether the row is doubtful: other work held a processor, or the peak beside it
 * was far from the best of the run so far. */
void report_remark(struct bench_state *state, const struct row *row, const struct row_run *run,
                   const char *remark);

#endif
