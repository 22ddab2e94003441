/* SPDX-License-Identifier: MIT
 * Which keys a query sees by its position: length, causal, window. Positions
 * are logical; see rapt_attention_desc. */
#ifndef RAPT_MASK_H
#define RAPT_MASK_H

#include "plan.h"

/* Half open. */
struct rapt_span {
    int64_t begin, end;
};

/* One sequence: its lengths and where its first key and first query stand. */
struct rapt_sequence {
    int64_t query_length, kv_length, key_position, query_position;
};

static inline struct rapt_sequence rapt_sequence_of(const rapt_attention_desc *desc, int64_t batch) {
    struct rapt_sequence s;
    s.query_length = rapt_length_at(desc->query_lengths, batch, desc->query_length);
    s.kv_length = rapt_length_at(desc->kv_lengths, batch, desc->kv_length);
    s.key_position = rapt_length_at(desc->key_position, batch, 0);
    s.query_position = s.key_position;
    if (desc->query_origin == RAPT_ORIGIN_BOTTOM_RIGHT)
        s.query_position += s.kv_length - s.query_length;
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

static inline struct rapt_span rapt_intersect(struct rapt_span a, struct rapt_span b) {
    struct rapt_span both = {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
    return both;
}

#endif
