/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include "row_kinds.h"

static const struct row_settings *settings;
static struct row_run run;

static void run_row(struct bench_state *state, const void *argument) {
    const struct row *row = argument;
    switch (row->kind) {
    case ROW_PREFILL:
    case ROW_FROM_MEMORY:
    case ROW_TINY:
        row_attention(state, row, settings, &run);
        break;
    case ROW_LAYER:
        row_layer(state, row, settings, &run);
        break;
    case ROW_MIXED:
        row_mixed(state, row, settings, &run);
        break;
    case ROW_MATMUL:
    case ROW_MATMUL_FROM_MEMORY:
        row_matmul(state, row, settings, &run);
        break;
    case ROW_APPEND:
        row_append(state, row, settings, &run);
        break;
    case ROW_PEER:
        row_peer(state, row, settings, &run);
        break;
    case ROW_FMA_PEAK:
    case ROW_STREAM_PEAK:
        row_peak(state, row, settings, &run);
        break;
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
