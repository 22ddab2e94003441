/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include "harness.h"
#include "peaks.h"
#include "peer.h"
#include "row_table.h"

#include <stdio.h>

static const struct row_settings *settings;

/* What is measured beside one row. Static: samples are large. */
static struct problem problem, second_problem;
static struct contender subject, beside;
static struct fma_peak fma_peak;
static struct stream_peak stream_peak;

static void report_time(struct bench_state *state, const struct contender *contender) {
    bench_time(state, contender->best_seconds);
    bench_counter(state, "median_ms", contender->median_seconds * 1e3);
    bench_counter(state, "samples", contender->sample_count);
}

/* of_peak_median: the median of the row against the best of the peak, the harder of both comparisons. */
static void report_rates(struct bench_state *state, const struct problem *work,
                         const struct contender *contender, double stream_rate) {
    double fma_rate = fma_peak_rate(&fma_peak);
    report_time(state, contender);
    bench_counter(state, "gflops", work->flops / contender->best_seconds * 1e-9);
    bench_counter(state, "of_peak", work->flops / contender->best_seconds / fma_rate);
    bench_counter(state, "of_peak_median", work->flops / contender->median_seconds / fma_rate);
    bench_counter(state, "peak_gflops", fma_rate * 1e-9);
    bench_counter(state, "gbps", work->bytes / contender->best_seconds * 1e-9);
    bench_counter(state, "of_stream", work->bytes / contender->best_seconds / stream_rate);
    bench_counter(state, "of_stream_median", work->bytes / contender->median_seconds / stream_rate);
    bench_counter(state, "stream_gbps", stream_rate * 1e-9);
    bench_counter(state, "heads", (double)work->shape.query_heads);
}

/* The ratio to the limit as it would be had nobody else used the processor; tells of one thread only. */
static double ratio_in_processor_time(enum row_kind limit) {
    if (limit == ROW_STREAM_PEAK)
        return problem.bytes / subject.best_cpu_seconds * stream_peak.contender.best_cpu_seconds /
               (double)stream_peak.region_bytes;
    return problem.flops / subject.best_cpu_seconds * fma_peak.contender.best_cpu_seconds / fma_peak.flops;
}

/* Says where the row can not be trusted: where other work held a processor, or where the peak beside it was
 * far from the best of the run so far. */
static void note_disturbance(struct bench_state *state, const struct row *row, enum row_kind limit) {
    char text[128] = "";
    const char *limit_name = limit == ROW_STREAM_PEAK ? "stream" : "FMA";
    struct peak_range range = peak_history(limit == ROW_STREAM_PEAK ? RAPT_ISA_AUTO : row->isa, row->threads);
    double drift = peak_drift(range, range.latest), had = processors_had(&subject) / row->threads;
    if (drift > tolerated_peak_drift)
        snprintf(text, sizeof text, "(%s peak %.0f %% below the run's best)", limit_name, 100 * drift);
    if (had < 1 - tolerated_peak_drift && row->threads == 1)
        snprintf(text, sizeof text, "(others took %.0f %% of the processor; in processor time %.1f %% of %s)",
                 100 * (1 - had), 100 * ratio_in_processor_time(limit), limit_name);
    else if (had < 1 - tolerated_peak_drift)
        snprintf(text, sizeof text, "(others took %.0f %% of the processors)", 100 * (1 - had));
    bench_counter(state, "processor_share", had);
    if (text[0] != '\0')
        bench_note(state, text);
}

static void run_attention(struct bench_state *state, const struct row *row) {
    bool decode = row->kind == ROW_DECODE, threaded = row->threads > 1;
    size_t cursor = 0;
    rapt_message why = {""};
    if (!problem_init(&problem, &row->shape, row->isa, row->threads, settings->arena, decode ? &cursor : NULL,
                      &why)) {
        bench_skip(state, why.text);
        return;
    }
    fma_peak_init(&fma_peak, row->isa, row->threads);
    stream_peak_init(&stream_peak, settings->arena, problem.region_bytes, &cursor, row->threads);
    subject = (struct contender){.run = problem_run, .context = &problem, .calls_per_round = 1};
    struct contender *contenders[4] = {&subject, &fma_peak.contender};
    int count = 2;
    if (decode)
        contenders[count++] = &stream_peak.contender;
    second_problem = problem; /* the same work and buffers on one thread, in turns with it */
    second_problem.threads = 1;
    beside = (struct contender){.run = problem_run, .context = &second_problem, .calls_per_round = 1};
    if (threaded)
        contenders[count++] = &beside;
    measure(contenders, count, settings->seconds, settings->min_rounds);

    double stream_rate =
        decode ? stream_peak_rate(&stream_peak) : peak_history(RAPT_ISA_AUTO, row->threads).highest;
    report_rates(state, &problem, &subject, stream_rate);
    if (threaded)
        bench_counter(state, "speedup", beside.best_seconds / subject.best_seconds);
    note_disturbance(state, row, decode ? ROW_STREAM_PEAK : ROW_FMA_PEAK);
    if (problem.status != RAPT_OK)
        bench_skip(state, rapt_status_text(problem.status));
    problem_free(&problem);
}

#ifdef RAPT_BENCH_OPENBLAS
static struct peer peer, whole_peer;
static struct contender whole;

static void run_peer(struct bench_state *state, const struct row *row) {
    rapt_message why = {""};
    if (!problem_init(&problem, &row->shape, row->isa, row->threads, settings->arena, NULL, &why)) {
        bench_skip(state, why.text);
        return;
    }
    peer_init(&peer, &problem);
    double difference = peer_difference(&peer, &problem);
    fma_peak_init(&fma_peak, row->isa, row->threads);
    subject = (struct contender){.run = peer_run, .context = &peer, .calls_per_round = 1};
    beside = (struct contender){.run = problem_run, .context = &problem, .calls_per_round = 1};
    whole_peer = peer; /* the same buffers, but the scores of a head in one piece */
    whole_peer.block_rows = row->shape.query_length;
    whole = (struct contender){.run = peer_run, .context = &whole_peer, .calls_per_round = 1};
    struct contender *contenders[] = {&subject, &beside, &whole, &fma_peak.contender};
    measure(contenders, 4, settings->seconds, settings->min_rounds);

    report_rates(state, &problem, &subject, peak_history(RAPT_ISA_AUTO, row->threads).highest);
    bench_counter(state, "rapt_speedup", subject.best_seconds / beside.best_seconds);
    bench_counter(state, "rapt_speedup_whole", whole.best_seconds / beside.best_seconds);
    bench_counter(state, "block_rows", (double)peer.block_rows);
    note_disturbance(state, row, ROW_FMA_PEAK);
    if (!(difference < 1e-4))
        bench_skip(state, "the peer and rapt do not agree, so one of them is wrong");
    peer_free(&peer);
    problem_free(&problem);
}
#else
static void run_peer(struct bench_state *state, const struct row *row) {
    (void)row;
    bench_skip(state, "this build has no OpenBLAS");
}
#endif

static void report_range(struct bench_state *state, struct peak_range range, const char *counter) {
    char text[96];
    bench_counter(state, counter, range.highest * 1e-9);
    bench_counter(state, "lowest", range.lowest * 1e-9);
    bench_counter(state, "drift", peak_drift(range, range.lowest));
    snprintf(text, sizeof text, "(beside the rows %.4g to %.4g)", range.lowest * 1e-9, range.highest * 1e-9);
    bench_note(state, text);
}

static void run_peak(struct bench_state *state, const struct row *row) {
    size_t cursor = 0;
    struct contender *contender = row->kind == ROW_FMA_PEAK ? &fma_peak.contender : &stream_peak.contender;
    if (row->kind == ROW_FMA_PEAK)
        fma_peak_init(&fma_peak, row->isa, row->threads);
    else
        stream_peak_init(&stream_peak, settings->arena, settings->arena->bytes / 8, &cursor, row->threads);
    measure(&contender, 1, settings->seconds / 4, settings->min_rounds);
    if (row->kind == ROW_FMA_PEAK)
        fma_peak_rate(&fma_peak);
    else
        stream_peak_rate(&stream_peak);
    report_time(state, contender);
    report_range(state, peak_history(row->isa, row->threads), row->kind == ROW_FMA_PEAK ? "gflops" : "gbps");
}

static void run_row(struct bench_state *state, const void *argument) {
    const struct row *row = argument;
    switch (row->kind) {
    case ROW_PREFILL:
    case ROW_DECODE: run_attention(state, row); break;
    case ROW_PEER: run_peer(state, row); break;
    case ROW_FMA_PEAK:
    case ROW_STREAM_PEAK: run_peak(state, row); break;
    }
}

int rows_add(const struct row_settings *chosen, row_wanted *wanted) {
    static struct row rows[ROW_MAX_COUNT];
    int count = row_table(rows), added = 0;
    settings = chosen;
    for (int i = 0; i < count; i++) {
        if (!wanted(rows[i].name))
            continue;
        bench_add(rows[i].name, run_row, &rows[i]);
        added++;
    }
    return added;
}
