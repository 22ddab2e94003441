/* SPDX-License-Identifier: MIT
 * Prefetches of lines. */
#ifndef RAPT_GENERIC_FETCH_H
#define RAPT_GENERIC_FETCH_H

#include <stdint.h>

#include "cpu.h"
#include "generic/loops.h"
#include "kernels.h"

/* Read within a few hundred cycles. */
RAPT_INLINE void fetch_soon(const void *line) { __builtin_prefetch(line, 0, 3); }

/* Read later, beside a loop whose own data fill L1. */
RAPT_INLINE void fetch_later(const void *line) { __builtin_prefetch(line, 0, 2); }

RAPT_INLINE bool streams_into_l1(void) {
    return rapt_cpu_requests() == RAPT_REQUESTS_FAR_INTO_L1;
}

RAPT_INLINE bool reaches_next_page(void) {
    const enum rapt_requests requests = rapt_cpu_requests();
    return requests == RAPT_REQUESTS_NEXT_PAGE || requests == RAPT_REQUESTS_L1_AT_HAND;
}

/* Distance from near to far line where keys and values take turns, in whole rows. */
RAPT_INLINE int64_t far_rows(int64_t row_bytes, bool paces) {
    const int64_t bytes = reaches_next_page() || paces ? 4 << 10 : 2 << 10;
    return (bytes + row_bytes - 1) / row_bytes;
}

/* The same where several heads take turns, or turns go page by page. Their near line is a whole turn ahead, which may
 * be far enough: then both requests are for it, unless they are split (takes_l1_at_hand in turn_requests.h). So are
 * those of one head in pages, since what follows a page is not its own. */
RAPT_INLINE int64_t far_rows_of_turns(int64_t row_bytes, int heads) {
    return reaches_next_page() || heads == 1 ? 0 : far_rows(row_bytes, false);
}

/* Memory-bound loops request two lines per line: one `near` after the current line, and one `far` after that. The first
 * goes into L1 and the second into L2, or the other way round, since L2 then holds what is near. Chosen before the
 * loop: a branch per line would keep compilers from interleaving the steps around it. */
struct reach {
    int64_t l1; /* from the current line to the one for L1 */
    int64_t l2; /* from there to the one for L2 */
};

RAPT_INLINE struct reach reach_of(int64_t near, int64_t far) {
    return streams_into_l1() ? (struct reach){near + far, -far} : (struct reach){near, far};
}

/* line: the one for L1. */
RAPT_INLINE void fetch_both(const char *line, int64_t l2) {
    fetch_soon(line);
    fetch_later(line + l2);
}

/* Where a processor runs ahead of its computation, requests come in bursts, more than its caches can track, and loads
 * stall until there is room. Few rows compute too little to space them out. */
RAPT_INLINE bool paces_requests(bool exceeds_caches) {
    return exceeds_caches && reaches_next_page();
}

/* The same for turns of keys and values. token_bytes covers all heads that take turns: with 16-bit types they should be
 * many. Where requests go into L1, pacing pays only with AVX-512, for few rows of float32
 * (docs/performance/processors.md). */
RAPT_INLINE bool paces_turns(bool exceeds_caches, int format, int rows, int64_t token_bytes) {
    enum { MOST_ROWS = 3, LEAST_BYTES = 512, LEAST_OF_ONE_F16 = 256 };
    const int least = rows > 1 ? LEAST_BYTES : format == RAPT_FORMAT_F16 ? LEAST_OF_ONE_F16 : 0;
    if (!streams_into_l1())
        return paces_requests(exceeds_caches) && (format == RAPT_FORMAT_F32 || token_bytes >= least);
    return exceeds_caches && VL == 16 && format == RAPT_FORMAT_F32 && rows <= MOST_ROWS && token_bytes >= LEAST_BYTES;
}

/* The same number after a dependency chain of multiplications: a request that uses it issues that much later than the
 * one before, while independent instructions go on. */
RAPT_INLINE uintptr_t paced(uintptr_t at, int products) {
    uintptr_t one = 1;
    RAPT_OPAQUE(one);
    RAPT_UNROLL for (int i = 0; i < products; i++) {
        at *= one;
        RAPT_OPAQUE(at);
    }
    return at;
}

/* A branch per line: for loops that do nothing else, or enough between two lines to hide it. */
RAPT_INLINE void fetch_into(bool l1, const void *line) {
    if (l1)
        fetch_soon(line);
    else
        fetch_later(line);
}

#endif
