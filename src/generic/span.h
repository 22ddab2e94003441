/* SPDX-License-Identifier: MIT
 * Hull and intersection of the visible spans of some rows: kernels skip keys that no row sees, and the tests where
 * every row sees all. */
#ifndef RAPT_GENERIC_SPAN_H
#define RAPT_GENERIC_SPAN_H

#include "generic/assumed.h"

struct span {
    int begin, end;             /* no row sees keys outside these */
    int inner_begin, inner_end; /* every row sees these; within [begin, end) */
};

RAPT_INLINE int clipped(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

/* Rows [row, row + count), within [key_begin, key_end); spans may be NULL. */
RAPT_INLINE struct span span_of(const struct rapt_visible_spans *spans, int row, int count, int key_begin,
                                int key_end) {
    struct span s = {key_begin, key_end, key_begin, key_end};
    if (!spans)
        return s;
    const int last = row + count - 1;
    s.begin = clipped(spans->first_key[row], key_begin, key_end);
    s.end = clipped(spans->end_key[last], s.begin, key_end);
    s.inner_begin = clipped(spans->first_key[last], s.begin, s.end);
    s.inner_end = clipped(spans->end_key[row], s.inner_begin, s.end);
    return s;
}

#endif
