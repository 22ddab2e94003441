/* SPDX-License-Identifier: MIT
 * The keys of a call to score where memory feeds it: row by row, panel by panel, and what is prefetched beside them. */
#ifndef RAPT_GENERIC_STREAM_H
#define RAPT_GENERIC_STREAM_H

#include "generic/errands.h"

/* The next rows, prefetched in memory order: far ahead into L2, which has room for many requests, and just before their
 * use into L1. */
struct stream {
    const char *row;
    int64_t byte, row_bytes;
    int64_t step_bytes; /* to the next row; 0 where rows do not come from memory */
    int64_t lead_bytes; /* to the one that is fetched far ahead */
    struct turns *turns; /* what is fetched into L2 instead; NULL = rows at the step. */
    struct walk soon;    /* Then these rows are fetched into L1, if there is a step. */
    struct pair *pair;   /* fetched instead of all that; NULL = none */
};

/* Rows that come `keys` after the one at key; where lead_bytes says that rows to come are elsewhere, those at key. */
RAPT_INLINE struct stream stream_of(const struct rapt_score_args *a, int format, const char *key, int keys) {
    const int64_t step_bytes = a->streams ? a->key_stride_bytes : 0;
    return (struct stream){.row = a->lead_bytes ? key : key + keys * step_bytes,
                           .row_bytes = rapt_format_row_bytes(format, a->head_dim),
                           .step_bytes = step_bytes,
                           .lead_bytes = lead_of(a->lead_bytes, step_bytes, format, a->head_dim)};
}

/* As take_pump and put_pump. */
RAPT_INLINE struct stream take_stream(const struct stream *stream) {
    return (struct stream){.row = stream->row,
                           .byte = stream->byte,
                           .row_bytes = stream->row_bytes,
                           .step_bytes = stream->step_bytes,
                           .lead_bytes = stream->lead_bytes,
                           .turns = stream->turns,
                           .soon = {stream->soon.row, stream->soon.left, stream->soon.next},
                           .pair = stream->pair};
}

RAPT_INLINE void put_stream(struct stream *stream, const struct stream *own) {
    stream->row = own->row;
    stream->byte = own->byte;
    stream->soon.row = own->soon.row;
    stream->soon.left = own->soon.left;
    stream->soon.next = own->soon.next;
}

/* Step i of so many that share so many lines. */
RAPT_INLINE void stream_line(struct stream *stream, int i, int lines, int steps) {
    if (i * lines % steps >= lines)
        return;
    if (stream->pair) {
        pair_line(stream->pair, i * lines / steps % 2);
        return;
    }
    if (stream->turns) {
        if (!stream->step_bytes)
            return;
        __builtin_prefetch(stream->soon.row + stream->byte, 0, 3);
        stream->byte += 64;
        if (stream->byte >= stream->row_bytes)
            stream->byte = 0, walk_on(&stream->soon, 1, stream->step_bytes);
        return;
    }
    __builtin_prefetch(stream->row + stream->byte, 0, 3);
    __builtin_prefetch(stream->row + stream->byte + stream->lead_bytes, 0, 2);
    stream->byte += 64;
    if (stream->byte >= stream->row_bytes)
        stream->byte = 0, stream->row += stream->step_bytes;
}

/* The keys of a call, panel by panel, and what is fetched beside them. */
struct feed {
    struct walk walk;
    struct turns turns;
    int left; /* keys */
};

RAPT_INLINE struct feed feed_of(const struct rapt_score_args *a) {
    return (struct feed){walk_of(a->key, a->key_rows, a->runs), turns_of(a->ahead), a->key_end - a->key_begin};
}

/* The next n <= width keys. */
RAPT_INLINE struct stream feed_keys(struct feed *feed, const struct rapt_score_args *a, int format, const char **keys,
                                    int n, int width) {
    const char *key = feed->walk.row;
    feed->left -= n;
    if (a->runs) {
        walk_rows(&feed->walk, a->key_stride_bytes, keys, n, width);
        return (struct stream){.row_bytes = rapt_format_row_bytes(format, a->head_dim),
                               .step_bytes = feed->left > 0 ? a->key_stride_bytes : 0,
                               .turns = &feed->turns,
                               .soon = feed->walk};
    }
    feed->walk.row += width * a->key_stride_bytes;
    for (int k = 0; k < width; k++)
        keys[k] = key + (k < n ? k : 0) * a->key_stride_bytes;
    return stream_of(a, format, key, width);
}

#endif
