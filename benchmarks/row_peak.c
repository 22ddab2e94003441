/* SPDX-License-Identifier: MIT
 *
 * Rows of the peaks: measured once more, and what earlier rows saw of them. */
#include "row_kinds.h"

#include <stdio.h>

static void report_range(struct bench_state *state, struct peak_range range, const char *counter) {
    char text[96];
    bench_counter(state, counter, range.highest * 1e-9);
    bench_counter(state, "lowest", range.lowest * 1e-9);
    bench_counter(state, "drift", peak_drift(range, range.lowest));
    snprintf(text, sizeof text, "%.4g to %.4g %s beside the rows", range.lowest * 1e-9, range.highest * 1e-9,
             counter[1] == 'f' ? "GFLOPS" : "GB/s");
    bench_note(state, text);
}

void row_peak(struct bench_state *state, const struct row *row, const struct row_settings *settings,
              struct row_run *run) {
    const bool fma = row->kind == ROW_FMA_PEAK;
    const struct arena *arena = settings->arena;
    size_t cursor = 0;
    struct contender *contender = fma ? &run->fma_peak.contender : &run->stream_peak.contender;
    if (fma)
        fma_peak_init(&run->fma_peak, row->isa, row->threads);
    else
        stream_peak_init(&run->stream_peak, arena, arena->bytes / 8, &cursor, row->threads);
    measure(&contender, 1, settings->seconds / 4, settings->min_rounds);
    if (fma)
        fma_peak_rate(&run->fma_peak);
    else
        stream_peak_rate(&run->stream_peak);
    report_time(state, contender);
    report_range(state, peak_history(row->isa, row->threads), fma ? "gflops" : "gbps");
}
