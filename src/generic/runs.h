/* SPDX-License-Identifier: MIT
 * Stored rows, run by run, and strands that are prefetched meanwhile. */
#ifndef RAPT_GENERIC_RUNS_H
#define RAPT_GENERIC_RUNS_H

#include "assume.h"
#include "generic/fetch.h"

/* The next row, and how many its run has from it on. */
struct walk {
    const char *row;
    int64_t left;
    const struct rapt_stored_run *next;
};

RAPT_INLINE struct walk walk_of(const char *row, int64_t rows, const struct rapt_stored_run *next) {
    return (struct walk){row, next ? rows : INT64_MAX, next};
}

/* Skips n rows; ASSUME n <= left. */
RAPT_INLINE void walk_advance(struct walk *walk, int64_t n, int64_t stride_bytes) {
    walk->row += n * stride_bytes;
    walk->left -= n;
    if (walk->left == 0) {
        RAPT_ASSUME(walk->next);
        walk->row = walk->next->row;
        walk->left = walk->next->rows;
        walk->next++;
    }
}

/* Skips any number of rows. */
RAPT_INLINE void walk_by(struct walk *walk, int64_t n, int64_t stride_bytes) {
    for (int64_t run; n > 0; n -= run) {
        run = n < walk->left ? n : walk->left;
        walk_advance(walk, run, stride_bytes);
    }
}

/* The next n <= width rows; the rest of `rows` repeats the first. */
static RAPT_KERNEL void walk_rows(struct walk *walk, int64_t stride_bytes, const char **rows, int n, int width) {
    RAPT_ASSUME(n >= 1);
    int at = 0;
    if (n == width && walk->left >= width) {
        RAPT_UNROLL for (int i = 0; i < width; i++)
            rows[i] = walk->row + i * stride_bytes;
        walk_advance(walk, width, stride_bytes);
        return;
    }
    while (n - at > walk->left) {
        const int run = (int)walk->left;
        for (int i = 0; i < run; i++)
            rows[at + i] = walk->row + i * stride_bytes;
        at += run;
        walk_advance(walk, run, stride_bytes);
    }
    for (int i = 0; at + i < n; i++)
        rows[at + i] = walk->row + i * stride_bytes;
    walk_advance(walk, n - at, stride_bytes);
    for (at = n; at < width; at++)
        rows[at] = rows[0];
}

enum { STRAND_LINES = 2 }; /* lines of a strand before the next one's turn */

/* A cursor over strands. */
struct strand_cursor {
    const char *const *next, *const *after, *const *end; /* current strand; end of its group; end of all */
    int64_t at, bytes;
    int interleaved, pace, lines;
    bool into_l1;
};

static RAPT_KERNEL struct strand_cursor open_strands(const struct rapt_strands *ahead) {
    if (!ahead)
        return (struct strand_cursor){0};
    return (struct strand_cursor){.next = ahead->strand,
                                  .into_l1 = streams_into_l1(),
                                  .after = ahead->strand + ahead->interleaved,
                                  .end = ahead->strand + ahead->count,
                                  .bytes = ahead->bytes,
                                  .interleaved = ahead->interleaved,
                                  .pace = ahead->pace};
}

/* Prefetches about as many lines as slots read meanwhile, times the pace. */
RAPT_INLINE void fetch_strands(struct strand_cursor *strands, int lines) {
    const char *const *next = strands->next, *const *const end = strands->end;
    const bool into_l1 = strands->into_l1;
    int64_t at = strands->at;
    for (lines = lines * strands->pace + strands->lines; next < end && lines > 0; lines -= STRAND_LINES) {
        const char *line = *next++ + at;
        RAPT_UNROLL for (int i = 0; i < STRAND_LINES; i++)
            fetch_into(into_l1, line + 64 * i);
        if (next < strands->after)
            continue;
        next -= strands->interleaved;
        at += 64 * STRAND_LINES;
        if (at < strands->bytes)
            continue;
        at = 0;
        next = strands->after;
        strands->after += strands->interleaved;
    }
    strands->next = next;
    strands->at = at;
    strands->lines = lines;
}

#endif
