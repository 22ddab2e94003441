/* SPDX-License-Identifier: MIT */
#include "row_report.h"

#include <stdio.h>

void report_refusal(struct bench_state *state, rapt_status status, const char *why) {
    if (status == RAPT_OK)
        bench_skip(state, why);
    else
        bench_fail(state, why[0] ? why : rapt_status_text(status));
}

void report_failure(struct bench_state *state, rapt_status subject, rapt_status rival) {
    char text[128];
    snprintf(text, sizeof text, "its rival failed: %s", rapt_status_text(rival));
    if (subject != RAPT_OK)
        bench_fail(state, rapt_status_text(subject));
    else if (rival != RAPT_OK)
        bench_fail(state, text);
}

void report_time(struct bench_state *state, const struct contender *contender) {
    bench_time(state, contender->best_seconds);
    bench_counter(state, "median_ms", contender->median_seconds * 1e3);
    bench_counter(state, "spread", contender->spread);
    bench_counter(state, "samples", (double)contender->calls);
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* ..._median: the row's median against the peak's best, the stricter comparison. */
void report_rates(struct bench_state *state, const struct row *row, const struct row_run *run) {
    const struct workload *work = &run->workload;
    const double best = run->subject.best_seconds, median = run->subject.median_seconds;
    double fma_rate = fma_peak_rate(&run->fma_peak);
    double stream_rate = row_is_from_memory(row) ? stream_peak_rate(&run->stream_peak)
                                                      : peak_history(RAPT_ISA_AUTO, row->threads).highest;
    double limit_seconds = larger(work->flops / fma_rate, work->bytes / stream_rate);
    report_time(state, &run->subject);
    bench_counter(state, "gflops", work->flops / best * 1e-9);
    bench_counter(state, "of_peak", work->flops / best / fma_rate);
    bench_counter(state, "of_peak_median", work->flops / median / fma_rate);
    bench_counter(state, "peak_gflops", fma_rate * 1e-9);
    bench_counter(state, "gbps", work->bytes / best * 1e-9);
    bench_counter(state, "of_stream", work->bytes / best / stream_rate);
    bench_counter(state, "of_stream_median", work->bytes / median / stream_rate);
    bench_counter(state, "stream_gbps", stream_rate * 1e-9);
    bench_counter(state, "of_limit", limit_seconds / best);
    bench_counter(state, "of_limit_median", limit_seconds / median);
    bench_counter(state, "heads", (double)work->shape.query_heads);
    bench_counter(state, "threads", row->threads);
}

/* The ratio to the limit, had nobody else used the processor; meaningful for one thread only. */
static double ratio_in_processor_time(const struct row_run *run, bool by_memory) {
    double seconds = run->subject.best_cpu_seconds;
    const struct contender *fma = &run->fma_peak.contender, *stream = &run->stream_peak.contender;
    if (by_memory)
        return run->workload.bytes / seconds * stream->best_cpu_seconds / (double)run->stream_peak.bytes;
    return run->workload.flops / seconds * fma->best_cpu_seconds / run->fma_peak.flops;
}

void report_remark(struct bench_state *state, const struct row *row, const struct row_run *run,
                   const char *remark) {
    const bool by_memory = row_is_from_memory(row);
    const char *limit_name = by_memory                    ? "stream"
                             : peak_is_of_unit(row_peak_isa(row)) ? rapt_isa_name(row->isa)
                                                         : "FMA";
    struct peak_range range = peak_history(by_memory ? RAPT_ISA_AUTO : row_peak_isa(row), row->threads);
    double drift = peak_drift(range, range.latest), had = processors_had(&run->subject) / row->threads;
    char text[256];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", remark);
    if (had < 1 - tolerated_peak_drift && row->threads == 1)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 " (others took %.0f %% of the processor; in processor time %.1f %% of %s)",
                                 100 * (1 - had), 100 * ratio_in_processor_time(run, by_memory), limit_name);
    else if (had < 1 - tolerated_peak_drift && row->kind != ROW_TINY)
        used += (size_t)snprintf(text + used, sizeof text - used, " (others took %.0f %% of the processors)",
                                 100 * (1 - had));
    if (drift > tolerated_peak_drift)
        used += (size_t)snprintf(text + used, sizeof text - used, " (%s peak %.0f %% below the run's best)", limit_name,
                 100 * drift);
    bench_counter(state, "processor_share", had);
    if (used > 0)
        bench_note(state, text + (text[0] == ' '));
}
