/* SPDX-License-Identifier: MIT */
#include "row_kinds.h"

#include "peer.h"

#include <stdio.h>

#ifdef RAPT_BENCH_OPENBLAS

void row_peer(struct bench_state *state, const struct row *row, const struct row_settings *settings,
              struct row_run *run) {
    static struct peer peer, whole_peer;
    static struct contender whole;
    char remark[96];
    rapt_message why = {""};
    if (!workload_init(&run->workload, &row->shape, row->isa, row->threads, settings->arena, NULL, &why)) {
        report_refusal(state, run->workload.status, why.text);
        return;
    }
    peer_init(&peer, &run->workload);
    double difference = peer_difference(&peer, &run->workload);
    fma_peak_init(&run->fma_peak, row->isa, row->threads);
    run->subject = (struct contender){.run = peer_run, .context = &peer, .calls_per_round = 1};
    run->rival = (struct contender){.run = workload_run, .context = &run->workload, .calls_per_round = 1};
    whole_peer = peer; /* the same buffers, but the scores of a head in one piece */
    whole_peer.block_rows = row->shape.query_length;
    whole = (struct contender){.run = peer_run, .context = &whole_peer, .calls_per_round = 1};
    struct contender *contenders[] = {&run->subject, &run->rival, &whole, &run->fma_peak.contender};
    measure(contenders, 4, settings->seconds, settings->min_rounds);

    double faster = run->subject.best_seconds / run->rival.best_seconds;
    double faster_than_whole = whole.best_seconds / run->rival.best_seconds;
    report_rates(state, row, run);
    bench_counter(state, "rapt_speedup", faster);
    bench_counter(state, "rapt_speedup_whole", faster_than_whole);
    bench_counter(state, "rapt_speedup_median", run->subject.median_seconds / run->rival.median_seconds);
    bench_counter(state, "rapt_speedup_whole_median", whole.median_seconds / run->rival.median_seconds);
    bench_counter(state, "block_rows", (double)peer.block_rows);
    snprintf(remark, sizeof remark, "rapt is %.2f x as fast, %.2f x with whole matrices", faster,
             faster_than_whole);
    report_remark(state, row, run, remark);
    report_failure(state, RAPT_OK, run->workload.status);
    if (!(difference < 1e-4))
        bench_fail(state, "the peer and rapt do not agree, so one of them is wrong");
    peer_free(&peer);
    workload_free(&run->workload);
}

#else

void row_peer(struct bench_state *state, const struct row *row, const struct row_settings *settings,
              struct row_run *run) {
    (void)row, (void)settings, (void)run;
    bench_skip(state, "this build has no OpenBLAS");
}

#endif
