/* SPDX-License-Identifier: MIT
 * Errands that only prefetch. */
#ifndef RAPT_GENERIC_PREFETCHED_H
#define RAPT_GENERIC_PREFETCHED_H

#include "generic/fetch.h"
#include "generic/loops.h"

RAPT_INLINE const char *errand_at(const struct rapt_errands *e) {
    const struct rapt_errand *piece = &e->piece[e->at];
    return piece->base + e->row * piece->row_stride_bytes + e->head * piece->head_stride_bytes + e->byte;
}

/* Advances the cursor to the next row. */
RAPT_INLINE void finish_errand_row(struct rapt_errands *e) {
    const struct rapt_errand *piece = &e->piece[e->at];
    e->byte = 0;
    if (++e->head < piece->heads)
        return;
    e->head = 0;
    if (++e->row < piece->rows)
        return;
    e->row = 0;
    e->at++;
}

/* Prefetches some lines; e may be NULL. More than a dozen at once would delay the loads around them. */
RAPT_INLINE void run_errands(struct rapt_errands *e, int64_t lines) {
    while (lines > 0 && e && e->at < e->count) {
        const char *at = errand_at(e);
        const int64_t of_row = (e->piece[e->at].row_bytes - e->byte + 63) / 64, now = of_row < lines ? of_row : lines;
        for (const char *end = at + 64 * now; at < end; at += 64)
            fetch_later(at);
        lines -= now;
        e->byte += 64 * (int)now;
        if (now == of_row)
            finish_errand_row(e);
    }
}

#endif
