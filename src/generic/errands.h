/* SPDX-License-Identifier: MIT
 * Errands: rows that a slot prefetches while it computes something else. */
#ifndef RAPT_GENERIC_ERRANDS_H
#define RAPT_GENERIC_ERRANDS_H

#include "generic/prefetched.h"
#include "generic/runs.h"
#include "generic/stage.h"
#include "generic/turn_requests.h"

/* Stages rows that were prefetched a while ago. Not while accumulators are live: it takes the registers. */
static void stage_errands(struct rapt_errands *e) {
    enum { LAG = 8 }; /* rows that may not have arrived yet */
    if (!e || e->at >= e->count)
        return;
    for (int i = e->at > 0 ? e->at - 1 : 0; i <= e->at; i++) {
        struct rapt_errand *piece = &e->piece[i];
        const int fetched = i < e->at ? piece->rows : e->row - LAG;
        struct rapt_staging *staging = piece->staging;
        for (; staging && staging->ready < piece->first + fetched; staging->ready++) {
            const int64_t row = staging->ready - piece->first;
            stage_row[staging->format](staging->rows + staging->ready * staging->dim,
                                       piece->base + row * piece->row_stride_bytes, staging->dim, &piece->scales, row);
        }
    }
}

/* Rows for a slot that decides by itself when to prefetch their lines. */
struct errand_rows {
    const char *row;
    int64_t stride_bytes, lines; /* of each row */
    int rows;
};

/* Up to most_lines lines of the next rows of one piece; if none is left, a row of `dim` floats at at_hand. */
static RAPT_KERNEL struct errand_rows take_errand_rows(struct rapt_errands *e, const char *at_hand, int64_t dim,
                                                       int64_t most_lines) {
    if (!e || e->at >= e->count)
        return (struct errand_rows){at_hand, 0, (dim + 15) / 16, 1};
    const struct rapt_errand *piece = &e->piece[e->at];
    const int64_t lines = (piece->row_bytes + 63) / 64, most = (most_lines + lines - 1) / lines;
    const int left = piece->heads == 1 ? piece->rows - e->row : 1;
    struct errand_rows rows = {errand_at(e), piece->row_stride_bytes, lines, most < left ? (int)most : left};
    e->row += rows.rows - 1;
    finish_errand_row(e);
    return rows;
}

enum { PUMP_LEAD = 48 /* rows that are fetched ahead */ };

/* A prefetch cursor. */
struct pump {
    const char *line;
    int64_t gap;    /* from the end of a row to the next */
    int row_lines, left, step_bytes;
    struct strand_cursor *strands; /* fetched instead, between keys; NULL = none */
    int at_more; /* lines per step beyond the first (few.h) */
    bool soon;   /* into L1 (few.h); elsewhere a constant false */
    bool in_turns; /* a compile-time constant; if set, fetches: */
    struct turn_requests turns;
};

/* Distance from a row to the one prefetched with it: given, or if 0, the bytes of PUMP_LEAD float32 rows. */
RAPT_INLINE int64_t lead_of(int64_t given, int64_t stride_bytes, int format, int dim) {
    if (given)
        return given;
    const int64_t bytes = 4 * (int64_t)dim;
    return stride_bytes *
           (format == RAPT_FORMAT_F32 ? PUMP_LEAD : PUMP_LEAD * bytes / rapt_format_row_bytes(format, dim));
}

/* steps: prefetches per row, spread evenly over its bytes; of float32 one line each, if no more than lines. */
RAPT_INLINE struct pump pump_of(const char *rows, int64_t stride_bytes, int64_t lead_bytes, int dim, int format,
                                int steps) {
    const int64_t even = (rapt_format_row_bytes(format, dim) + steps - 1) / steps;
    const bool of_lines = format == RAPT_FORMAT_F32 && steps <= (dim + 15) / 16;
    const int step_bytes = of_lines || even > 64 ? 64 : (int)even;
    return (struct pump){.line = rows + lead_of(lead_bytes, stride_bytes, format, dim),
                         .gap = stride_bytes - (int64_t)steps * step_bytes,
                         .row_lines = steps,
                         .left = steps,
                         .step_bytes = step_bytes};
}

/* Fetches one line again and again, which costs next to nothing. */
RAPT_INLINE struct pump idle_pump(const char *line) {
    const struct requests idle = {.line = line, .gap = -64, .row_lines = 1, .left = 1};
    return (struct pump){
        .line = line, .gap = -64, .row_lines = 1, .left = 1, .step_bytes = 64, .turns = {.keys = idle, .values = idle}};
}

/* in_turns: of pumps that the loop meets. */
RAPT_INLINE struct pump take_pump(const struct pump *pump, bool in_turns) {
    struct pump own = {.line = pump->line,
                       .gap = pump->gap,
                       .row_lines = pump->row_lines,
                       .left = pump->left,
                       .step_bytes = pump->step_bytes,
                       .strands = pump->strands,
                       .at_more = pump->at_more,
                       .in_turns = in_turns};
    if (in_turns)
        own.turns = take_turn_requests(&pump->turns);
    return own;
}

RAPT_INLINE void put_pump(struct pump *pump, const struct pump *own) {
    if (own->in_turns) {
        put_turn_requests(&pump->turns, &own->turns);
        return;
    }
    pump->line = own->line;
    pump->left = own->left;
}

RAPT_INLINE void pump_line(struct pump *p) {
    fetch_into(p->soon, p->line);
    p->line += p->step_bytes;
    if (__builtin_expect(--p->left == 0, 0))
        p->left = p->row_lines, p->line += p->gap;
}

/* Beside values of narrow tiles: step i of `steps`, which share `lines` lines. */
RAPT_INLINE void pump_value_line(struct pump *p, int i, int lines, int steps) {
    if (i * lines % steps >= lines)
        return;
    if (p->in_turns)
        request_line(&p->turns, i * lines / steps % 2);
    else
        pump_line(p);
}

#endif
