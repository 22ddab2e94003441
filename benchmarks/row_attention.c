/* SPDX-License-Identifier: MIT */
#include "row_kinds.h"

#include <stdio.h>

/* Beyond so many operations two rounds suffice. */
static const double long_run_flops = 1e11;

static struct workload_shape rival_shape(const struct row *row) {
    struct workload_shape shape = row->shape;
    if (row->rival == RIVAL_FULL) {
        shape.feature = FEATURE_NONE;
        shape.window = 0;
    }
    if (row->rival == RIVAL_CONTIGUOUS)
        shape.page_tokens = 0;
    if (row->rival == RIVAL_HEADS) {
        shape.kv_heads *= shape.batch;
        shape.query_heads *= shape.batch;
        shape.batch = 1;
    }
    return shape;
}

static bool prepare(const struct row *row, const struct row_settings *settings, struct row_run *run,
                    size_t *cursor, rapt_message *why) {
    const struct workload_shape other = rival_shape(row);
    const int threads = row->rival == RIVAL_CONTIGUOUS ? row->threads : 1;
    size_t *const own_cursor = row->kind == ROW_FROM_MEMORY ? cursor : NULL;
    run->rival_workload.status = RAPT_OK; /* not that of an earlier row */
    if (!workload_init(&run->workload, &row->shape, row->isa, row->threads, settings->arena, own_cursor, why))
        return false;
    if (row->rival == RIVAL_NONE ||
        workload_init(&run->rival_workload, &other, row->isa, threads, settings->arena, own_cursor, why))
        return true;
    workload_free(&run->workload);
    return false;
}

static void measure_all(const struct row *row, const struct row_settings *settings, struct row_run *run,
                        size_t *cursor) {
    void (*const work)(void *) = row->kind == ROW_TINY ? workload_plan_and_run : workload_run;
    const bool is_long = run->workload.flops / row->threads > long_run_flops;
    const int least_share = 8; /* of the time that the row takes at the peak, for the peak itself */
    run->subject = (struct contender){.run = work, .context = &run->workload, .calls_per_round = 1};
    run->rival = (struct contender){.run = work, .context = &run->rival_workload, .calls_per_round = 1};
    fma_peak_init(&run->fma_peak, row_peak_isa(row), row->threads);
    while (run->fma_peak.contender.calls_per_round * run->fma_peak.flops < run->workload.flops / least_share)
        run->fma_peak.contender.calls_per_round *= 2;
    struct contender *contenders[4] = {&run->subject, &run->fma_peak.contender};
    int count = 2;
    if (row->kind == ROW_FROM_MEMORY) {
        stream_peak_init(&run->stream_peak, settings->arena, run->workload.region_bytes, cursor,
                         row->threads);
        contenders[count++] = &run->stream_peak.contender;
    }
    if (row->rival != RIVAL_NONE)
        contenders[count++] = &run->rival;
    measure(contenders, count, settings->seconds, is_long ? 2 : settings->min_rounds);
}

static double best_ratio(const struct contender *above, const struct contender *below) {
    return above->best_seconds / below->best_seconds;
}

static double median_ratio(const struct contender *above, const struct contender *below) {
    return above->median_seconds / below->median_seconds;
}

/* Comparison with the rival; says in remark what has no column. */
static void report_rival(struct bench_state *state, const struct row *row, const struct row_run *run,
                         char *remark, size_t remark_bytes) {
    double ratio;
    switch (row->rival) {
    case RIVAL_NONE:
        break;
    case RIVAL_ONE_THREAD:
        bench_counter(state, "speedup", best_ratio(&run->rival, &run->subject));
        bench_counter(state, "speedup_median", median_ratio(&run->rival, &run->subject));
        break;
    case RIVAL_FULL:
        ratio = run->rival_workload.pairs / run->workload.pairs;
        bench_counter(state, "cost", best_ratio(&run->subject, &run->rival) * ratio);
        bench_counter(state, "cost_median", median_ratio(&run->subject, &run->rival) * ratio);
        break;
    case RIVAL_CONTIGUOUS:
        bench_counter(state, "of_contiguous", best_ratio(&run->rival, &run->subject));
        bench_counter(state, "of_contiguous_median", median_ratio(&run->rival, &run->subject));
        break;
    case RIVAL_HEADS:
        ratio = best_ratio(&run->subject, &run->rival);
        bench_counter(state, "versus_heads", ratio);
        bench_counter(state, "versus_heads_median", median_ratio(&run->subject, &run->rival));
        snprintf(remark, remark_bytes, "%.2f x the time of %d heads of one sequence", ratio,
                 (int)run->rival_workload.shape.kv_heads);
        break;
    }
}

static void report_calls(struct bench_state *state, const struct row_run *run, char *remark,
                         size_t remark_bytes) {
    double microseconds = run->subject.best_seconds / WORKLOAD_CALLS * 1e6;
    bench_time(state, run->subject.best_seconds / WORKLOAD_CALLS);
    bench_counter(state, "median_ms", run->subject.median_seconds / WORKLOAD_CALLS * 1e3);
    bench_counter(state, "spread", run->subject.spread);
    bench_counter(state, "samples", (double)run->subject.calls);
    bench_counter(state, "microseconds", microseconds);
    bench_counter(state, "microseconds_median", run->subject.median_seconds / WORKLOAD_CALLS * 1e6);
    snprintf(remark, remark_bytes, "%.2f us for plan and run", microseconds);
}

void row_attention(struct bench_state *state, const struct row *row, const struct row_settings *settings,
                   struct row_run *run) {
    size_t cursor = 0;
    char remark[96] = "";
    rapt_message why = {""};
    if (!prepare(row, settings, run, &cursor, &why)) {
        const rapt_status status = run->workload.status;
        report_refusal(state, status != RAPT_OK ? status : run->rival_workload.status, why.text);
        return;
    }
    measure_all(row, settings, run, &cursor);
    report_rival(state, row, run, remark, sizeof remark);
    if (row->kind == ROW_TINY) {
        fma_peak_rate(&run->fma_peak);
        report_calls(state, run, remark, sizeof remark);
    } else {
        report_rates(state, row, run);
    }
    report_remark(state, row, run, remark);
    report_failure(state, run->workload.status, run->rival_workload.status);
    workload_free(&run->workload);
    if (row->rival != RIVAL_NONE)
        workload_free(&run->rival_workload);
}
