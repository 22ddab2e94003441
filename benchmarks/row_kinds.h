/* SPDX-License-Identifier: MIT
 *
 * How each kind of row is measured. run is scratch, and large. */
#ifndef RAPT_BENCHMARKS_ROW_KINDS_H
#define RAPT_BENCHMARKS_ROW_KINDS_H

#include "row_report.h"
#include "rows.h"

typedef void row_measure(struct bench_state *state, const struct row *row,
                         const struct row_settings *settings, struct row_run *run);

row_measure row_append, row_attention, row_layer, row_matmul, row_mixed, row_peer, row_peak;

#endif
