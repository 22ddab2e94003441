/* SPDX-License-Identifier: MIT
 * The keys of a memory-bound call to score: row by row, panel by panel, and what is prefetched beside them. */
#ifndef RAPT_GENERIC_STREAM_H
#define RAPT_GENERIC_STREAM_H

#include "generic/errands.h"

/* The next rows, prefetched in memory order: far ahead into L2, which has room for many requests, and just before use
 * into L1. */
struct stream {
    const char *row;
    int64_t byte, row_bytes;
    int64_t step_bytes;                   /* to the next row; 0 where rows do not come from memory */
    const char *const *next, *const *end; /* the rows after this one, while any are listed */
    int64_t l2;          /* see fetch_both */
    struct strand_cursor *strands; /* fetched into L2 instead; NULL = none */
    struct turn_requests *turns;   /* fetched instead of all that; NULL = none */
};

/* `rows` rows at a stride; dense rows count as one. */
RAPT_INLINE struct stream stream_at(const struct rapt_score_args *a, int format, const char *row, int rows) {
    const int64_t row_bytes = rapt_format_row_bytes(format, a->head_dim);
    const bool dense = a->key_stride_bytes == row_bytes;
    return (struct stream){.row = row,
                           .row_bytes = dense ? rows * row_bytes : row_bytes,
                           .step_bytes = dense ? rows * row_bytes : a->key_stride_bytes};
}

/* Rows from `keys` after key on; from key on where lead_bytes says that the next rows are elsewhere. */
RAPT_INLINE struct stream stream_of(const struct rapt_score_args *a, int format, const char *key, int keys) {
    const int64_t stride_bytes = a->streams ? a->key_stride_bytes : 0;
    struct stream stream = stream_at(a, format, a->lead_bytes ? key : key + keys * stride_bytes, keys);
    const struct reach reach = reach_of(0, lead_of(a->lead_bytes, stride_bytes, format, a->head_dim));
    stream.row += reach.l1;
    stream.l2 = reach.l2;
    if (!a->streams)
        stream.step_bytes = 0;
    return stream;
}

/* As take_pump and put_pump. */
RAPT_INLINE struct stream take_stream(const struct stream *stream) {
    return (struct stream){.row = stream->row,
                           .byte = stream->byte,
                           .row_bytes = stream->row_bytes,
                           .step_bytes = stream->step_bytes,
                           .next = stream->next,
                           .end = stream->end,
                           .l2 = stream->l2,
                           .strands = stream->strands,
                           .turns = stream->turns};
}

RAPT_INLINE void put_stream(struct stream *stream, const struct stream *own) {
    stream->row = own->row;
    stream->byte = own->byte;
    stream->next = own->next;
}

/* Step i of `steps`, which share `lines`. */
RAPT_INLINE void stream_line(struct stream *stream, int i, int lines, int steps) {
    if (i * lines % steps >= lines)
        return;
    if (stream->turns) {
        request_line(stream->turns, i * lines / steps % 2);
        return;
    }
    fetch_both(stream->row + stream->byte, stream->l2);
    stream->byte += 64;
    if (__builtin_expect(stream->byte >= stream->row_bytes, 0)) {
        stream->byte = 0, stream->row += stream->step_bytes;
        if (stream->next < stream->end)
            stream->row = *stream->next++;
    }
    RAPT_OPAQUE(stream->byte); /* else compilers duplicate what follows for rows that end here */
}

enum { FEED_KEYS = NARROW_VECTORS * VL }; /* at once, at most */

/* The keys of a call, panel by panel, and what is fetched beside them. */
struct feed {
    struct walk walk;
    struct strand_cursor strands;
    const char *soon[FEED_KEYS];
    int left; /* keys */
};

RAPT_INLINE void open_feed(struct feed *feed, const struct rapt_score_args *a) {
    feed->walk = walk_of(a->key, a->key_rows, a->runs);
    feed->strands = open_strands(a->ahead);
    feed->left = a->key_end - a->key_begin;
}

/* The next n rows, which lie in several runs. */
static RAPT_KERNEL struct stream look_ahead(struct feed *feed, const struct rapt_score_args *a, int format, int n) {
    struct walk walk = feed->walk;
    walk_rows(&walk, a->key_stride_bytes, feed->soon, n, n);
    struct stream stream = {.row = feed->soon[0], .row_bytes = rapt_format_row_bytes(format, a->head_dim)};
    stream.next = feed->soon + 1, stream.end = feed->soon + n;
    return stream;
}

/* Prefetches beside `width` keys from `key` on; feed is past them. */
RAPT_INLINE struct stream feed_stream(struct feed *feed, const struct rapt_score_args *a, int format, const char *key,
                                      int width) {
    if (!a->runs)
        return stream_of(a, format, key, width);
    const int n = feed->left < width ? feed->left : width;
    struct stream stream = n == 0                  ? (struct stream){.row = key, .row_bytes = 64}
                           : feed->walk.left >= n ? stream_at(a, format, feed->walk.row, n)
                                                  : look_ahead(feed, a, format, n);
    stream.strands = &feed->strands;
    stream.turns = NULL;
    return stream;
}

/* The next n keys, which lie in one run. */
RAPT_INLINE struct stream feed_spaced(struct feed *feed, const struct rapt_score_args *a, int format, int n) {
    const char *key = feed->walk.row;
    feed->left -= n;
    walk_advance(&feed->walk, n, a->key_stride_bytes);
    return feed_stream(feed, a, format, key, n);
}

/* The next n <= width keys. */
RAPT_INLINE struct stream feed_keys(struct feed *feed, const struct rapt_score_args *a, int format, const char **keys,
                                    int n, int width) {
    const char *key = feed->walk.row;
    feed->left -= n;
    walk_rows(&feed->walk, a->key_stride_bytes, keys, n, width);
    return feed_stream(feed, a, format, key, width);
}

#endif
