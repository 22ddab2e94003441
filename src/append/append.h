/* SPDX-License-Identifier: MIT
 * Writes new rows of keys and values to caches. rapt_rotate is the same: its output is a cache with one row per token.
 *
 * A cache is pages of page_tokens tokens; if it has none, the first dimension of its tensor counts as pages. Place =
 * page * page_tokens + offset. Each task looks at all tokens and takes those whose place belongs to it, in order, so
 * that of two tokens with the same place the last one wins for any number of threads. */
#ifndef RAPT_APPEND_H
#define RAPT_APPEND_H

#include "append/rotary.h"
#include "internal.h"
#include "rapt/cache.h"

/* Keys or values. */
struct rapt_append_side {
    const rapt_tensor *from, *into; /* NULL = absent */
    int dim, from_format, into_format;
    int64_t page_stride_bytes; /* of into */
    bool rotates, computes;    /* computes scales */
};

struct rapt_append {
    rapt_append_desc desc; /* complete */
    const struct rapt_table *table;
    struct rapt_append_side side[RAPT_SIDES];
    struct rapt_angles angles;
    int64_t pages, page_tokens; /* of the caches */
    int64_t tasks;
};

/* append/tokens.c: where a token goes. */
struct rapt_append_token {
    int64_t batch, row;   /* of key and value */
    int64_t page, offset; /* of the caches */
    int64_t rotary_position;
};

/* Calls take for the tokens of a task, in order. Lists are read again, and what has become illegal is skipped. */
typedef void (*rapt_take_token)(const struct rapt_append *append, const struct rapt_append_token *token);
void rapt_append_tokens(const struct rapt_append *append, int64_t task, rapt_take_token take);

/* append/rows.c: all heads of a token, read, rotated, stored. */
void rapt_append_rows(const struct rapt_append *append, const struct rapt_append_token *token);

#endif
