/* SPDX-License-Identifier: MIT
 * What the ranges of some rows have in common, so that kernels can leave out
 * the keys that none of them sees and the questions where all of them do. */
#ifndef RAPT_GENERIC_SPAN_H
#define RAPT_GENERIC_SPAN_H

#include "kernels.h"

struct span {
    int begin, end;             /* some row sees these keys at most */
    int inner_begin, inner_end; /* every row sees these; within begin and end */
};

RAPT_INLINE int clipped(int x, int low, int high) { return x < low ? low : x > high ? high : x; }

/* Of rows [row, row + count), within [key_begin, key_end). ranges may be NULL. */
static struct span span_of(const struct rapt_key_ranges *ranges, int row, int count, int key_begin, int key_end) {
    struct span s = {key_begin, key_end, key_begin, key_end};
    if (!ranges)
        return s;
    s.begin = s.inner_end = RAPT_BLOCK_KEYS;
    s.end = s.inner_begin = 0;
    for (int i = row; i < row + count; i++) {
        int first = ranges->first_key[i], end = ranges->end_key[i];
        s.begin = first < s.begin ? first : s.begin;
        s.inner_begin = first > s.inner_begin ? first : s.inner_begin;
        s.inner_end = end < s.inner_end ? end : s.inner_end;
        s.end = end > s.end ? end : s.end;
    }
    s.begin = clipped(s.begin, key_begin, key_end);
    s.end = clipped(s.end, s.begin, key_end);
    s.inner_begin = clipped(s.inner_begin, s.begin, s.end);
    s.inner_end = clipped(s.inner_end, s.inner_begin, s.end);
    return s;
}

#endif
