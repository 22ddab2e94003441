/* SPDX-License-Identifier: MIT
 * A part of the queries of a call. */
#ifndef RAPT_TESTS_HASH_PARTS_H
#define RAPT_TESTS_HASH_PARTS_H

#include "support/problem.h"

struct part {
    int64_t batch_first, batch, query_first, queries;
};

struct part_lists {
    int64_t kv_length[4], key_position[4], query_position[4];
};

/* Queries [query_first, + queries) of sequences [batch_first, + batch) as a separate call. */
rapt_attention_desc part_of(const rapt_attention_desc *whole, struct part part, struct part_lists *lists);

#endif
