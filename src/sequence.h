/* SPDX-License-Identifier: MIT
 * One sequence of a batch: where its keys and queries stand, what a query sees by position (length, causal, window),
 * and the blocks of that. Positions are logical: rapt_attention_desc. */
#ifndef RAPT_SEQUENCE_H
#define RAPT_SEQUENCE_H

#include "internal.h"

/* Half open. */
struct rapt_span {
    int64_t begin, end;
};

/* One sequence: its lengths, where its first key and first query stand, and where they lie. */
struct rapt_sequence {
    int64_t query_length, kv_length, key_position, query_position;
    int64_t query_first;          /* its first token in the tensors of queries */
    int64_t kv_first[RAPT_SIDES]; /* the same of keys and values */
};

/* Sums wrap: a caller may have changed a list since it was checked (rapt_work_write looks again). */
static inline int64_t rapt_wrapped_sum(int64_t a, int64_t b, int64_t minus) {
    return (int64_t)((uint64_t)a + (uint64_t)b - (uint64_t)minus);
}

static inline int64_t rapt_length_at(rapt_index_list list, int64_t i, int64_t otherwise) {
    return list.data ? rapt_index_at(list, i) : otherwise;
}

/* A length from offsets, from lengths, or the same for all; first: the sequence's first token. */
static inline int64_t rapt_length_of(rapt_index_list offsets, rapt_index_list lengths, int64_t batch, int64_t otherwise,
                                     int64_t *first) {
    *first = rapt_length_at(offsets, batch, 0);
    return offsets.data ? rapt_wrapped_sum(rapt_index_at(offsets, batch + 1), 0, *first)
                        : rapt_length_at(lengths, batch, otherwise);
}

static inline struct rapt_sequence rapt_sequence_of(const rapt_attention_desc *desc, int64_t batch) {
    struct rapt_sequence s;
    s.query_length =
        rapt_length_of(desc->query_offsets, desc->query_lengths, batch, desc->query_length, &s.query_first);
    s.kv_length = rapt_length_of(desc->kv_offsets, desc->kv_lengths, batch, desc->kv_length, &s.kv_first[RAPT_KEYS]);
    s.kv_first[RAPT_VALUES] = s.kv_first[RAPT_KEYS];
    s.key_position = rapt_length_at(desc->key_position, batch, 0);
    s.query_position = s.key_position;
    if (desc->query_origin == RAPT_ORIGIN_BOTTOM_RIGHT)
        s.query_position = rapt_wrapped_sum(s.key_position, s.kv_length, s.query_length);
    if (desc->query_origin == RAPT_ORIGIN_GIVEN)
        s.query_position = rapt_index_at(desc->query_position, batch);
    return s;
}

/* Positions of the keys that a query may see. Both ends grow with the
 * query's position, so the first and the last query bound those between. */
static inline struct rapt_span rapt_visible(const rapt_attention_desc *desc, const struct rapt_sequence *s,
                                            int64_t query_position) {
    const struct rapt_span stored = {s->key_position, s->key_position + s->kv_length};
    struct rapt_span keys = stored;
    bool window = desc->features & RAPT_WINDOW;
    if ((desc->features & RAPT_CAUSAL) && keys.end > query_position + 1)
        keys.end = query_position + 1;
    if (window && desc->window_right >= 0 && desc->window_right < keys.end - query_position - 1)
        keys.end = query_position + desc->window_right + 1;
    if (window && desc->window_left >= 0 && desc->window_left < query_position - keys.begin)
        keys.begin = query_position - desc->window_left;
    /* Nothing seen: an empty span within the stored keys. */
    if (keys.begin > stored.end)
        keys.begin = stored.end;
    if (keys.end < keys.begin)
        keys.end = keys.begin;
    return keys;
}

/* All that queries at positions first ... last see. */
static inline struct rapt_span rapt_visible_to(const rapt_attention_desc *desc, const struct rapt_sequence *s,
                                               int64_t first, int64_t last) {
    return (struct rapt_span){rapt_visible(desc, s, first).begin, rapt_visible(desc, s, last).end};
}

static inline struct rapt_span rapt_intersect(struct rapt_span a, struct rapt_span b) {
    return (struct rapt_span){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

static inline int64_t rapt_span_count(struct rapt_span span) {
    return span.end > span.begin ? span.end - span.begin : 0;
}

/* Blocks are named by the position at which they begin, a multiple of RAPT_BLOCK_KEYS. */
static inline struct rapt_span rapt_block_of(struct rapt_span visible, int64_t base) {
    return rapt_intersect(visible, (struct rapt_span){base, base + RAPT_BLOCK_KEYS});
}

/* The first block of visible at or after base; -1 = none. */
static inline int64_t rapt_next_block(struct rapt_span visible, int64_t base) {
    const int64_t first = visible.begin / RAPT_BLOCK_KEYS * RAPT_BLOCK_KEYS;
    const int64_t next = base > first ? base : first;
    return next < visible.end && visible.begin < visible.end ? next : -1;
}

#endif
