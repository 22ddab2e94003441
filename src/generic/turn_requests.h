/* SPDX-License-Identifier: MIT
 * Prefetches beside keys and values that take turns. */
#ifndef RAPT_GENERIC_TURN_REQUESTS_H
#define RAPT_GENERIC_TURN_REQUESTS_H

#include <limits.h>

#include "generic/fetch.h"

enum { PACED_PRODUCTS = 3 /* multiplications between two paced requests, as measured */ };

/* A series of prefetches, line by line: the next one; l2: see fetch_both. */
struct requests {
    const char *line;
    int64_t l2, gap; /* from the end of a row to the next */
    int row_lines, left; /* per row, and left of it; 1 where requests for dense rows are paced */
};

/* Those of keys and of values that take turns. */
struct turn_requests {
    struct requests keys, values;
    bool paces; /* a compile-time constant: requests at the end of row_lines wait for the one before */
    bool of_heads; /* several heads: the lines left at the end of a turn would be a burst */
};

/* Whether so few rows of a type run ahead of memory. */
RAPT_INLINE bool is_paced(int format, int rows) {
    const bool wide = VL >= 16;
    const int of_f32 = wide ? 4 : 2, of_bf16 = wide ? 2 : 1, of_f16 = wide ? 1 : 0;
    return rows <= (format == RAPT_FORMAT_F32    ? of_f32
                    : format == RAPT_FORMAT_BF16 ? of_bf16
                    : format == RAPT_FORMAT_F16  ? of_f16
                                                 : 0);
}

RAPT_INLINE void next_request(struct requests *requests, bool paces) {
    requests->line += 64;
    if (--requests->left == 0) {
        requests->left = requests->row_lines, requests->line += requests->gap;
        if (paces)
            requests->line = (const char *)paced((uintptr_t)requests->line, PACED_PRODUCTS);
    }
}

/* of_values: ideally a constant. */
RAPT_INLINE void request_line(struct turn_requests *turns, bool of_values) {
    struct requests *requests = of_values ? &turns->values : &turns->keys;
    fetch_both(requests->line, requests->l2);
    next_request(requests, turns->paces);
}

/* A local copy for a loop, and back what it changed: field by field, since compilers copy structs by vector loads,
 * which stall on stores to single fields. */
RAPT_INLINE struct requests take_requests(const struct requests *requests) {
    return (struct requests){requests->line, requests->l2, requests->gap, requests->row_lines, requests->left};
}

RAPT_INLINE struct turn_requests take_turn_requests(const struct turn_requests *turns) {
    return (struct turn_requests){.keys = take_requests(&turns->keys), .values = take_requests(&turns->values)};
}

RAPT_INLINE void put_requests(struct requests *requests, const struct requests *own) {
    requests->line = own->line;
    requests->left = own->left;
}

RAPT_INLINE void put_turn_requests(struct turn_requests *turns, const struct turn_requests *own) {
    put_requests(&turns->keys, &own->keys);
    put_requests(&turns->values, &own->values);
}

/* Requests for keys fetch values, and vice versa. */
RAPT_INLINE struct turn_requests requests_exchanged(const struct turn_requests *turns) {
    return (struct turn_requests){.keys = take_requests(&turns->values), .values = take_requests(&turns->keys)};
}

/* Near requests are `near` rows ahead, far ones `far` rows beyond those. */
RAPT_INLINE struct requests requests_of(const char *row, int64_t stride_bytes, int64_t near, int64_t far,
                                        int64_t row_bytes, bool paces) {
    const struct reach reach = reach_of(near * stride_bytes, far * stride_bytes);
    const bool is_dense = stride_bytes == row_bytes; /* others are whole lines */
    const int lines = !is_dense ? (int)(row_bytes / 64) : paces ? 1 : INT_MAX;
    return (struct requests){.line = row + reach.l1,
                             .l2 = reach.l2,
                             .gap = stride_bytes - row_bytes,
                             .row_lines = lines,
                             .left = lines};
}

/* Whether near requests are for the next turn, in memory order, and far_rows_of_turns says how far others go: for
 * several heads, and for pages; with 8 float32 lanes also on processors for which the far line is in the next page, as
 * measured. */
static bool requests_one_turn(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads) {
    return heads > 1 || score->runs || weigh->runs || (VL == 8 && reaches_next_page());
}

/* Whether near requests are for this turn instead, and far ones for the next. */
static bool takes_l1_at_hand(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads) {
    return requests_one_turn(score, weigh, heads) && score->exceeds_caches &&
           rapt_cpu_requests() == RAPT_REQUESTS_L1_AT_HAND;
}

/* Where not by turns, a head's rows get near and far requests, one by one. */
static struct turn_requests turn_requests_of(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                             int turn, int heads) {
    const int64_t row_bytes = heads * rapt_format_row_bytes(score->key_format, score->head_dim);
    const bool paces = is_paced(score->key_format, score->rows) &&
                       paces_turns(score->exceeds_caches, score->key_format, score->rows, row_bytes);
    const bool by_turns = requests_one_turn(score, weigh, heads);
    const int64_t far = by_turns ? far_rows_of_turns(row_bytes, heads) : far_rows(row_bytes, paces);
    const int64_t values_near = by_turns ? turn : far;
    return (struct turn_requests){
        .keys = requests_of(score->key, score->key_stride_bytes, turn, far, row_bytes, paces),
        .values = requests_of(weigh->value, weigh->value_stride_bytes, values_near, far, row_bytes, paces),
        .of_heads = heads > 1};
}

#endif
