/* SPDX-License-Identifier: MIT
 * What the references of all orders share: where the rows of a call are, which pairs of a query and a key take part,
 * and what is written of a row. b = sequence, h = query head, i = query, j = key. */
#ifndef RAPT_REFERENCE_ROWS_H
#define RAPT_REFERENCE_ROWS_H

#include "reference/reference.h"

/* Entry number n of a list. */
int64_t rapt_reference_entry(rapt_index_list list, int64_t n, int64_t if_absent);

char *rapt_reference_row(const rapt_tensor *tensor, int64_t b, int64_t h, int64_t token);

/* Query i of a tensor that has one row per query. */
char *rapt_reference_query_row(const rapt_attention_desc *desc, const rapt_tensor *tensor, int64_t b, int64_t h,
                               int64_t i);

int64_t rapt_reference_queries(const rapt_attention_desc *desc, int64_t b);
int64_t rapt_reference_kv_head(const rapt_attention_desc *desc, int64_t h);

/* The logical position of key 0. */
int64_t rapt_reference_first_key(const rapt_attention_desc *desc, int64_t b);

/* What step 2 adds to scores of head h: constants of the descriptor. */
struct rapt_reference_pair rapt_reference_pair_of_head(const rapt_attention_desc *desc, int64_t h);

/* The distance, bias and mask of a pair. */
void rapt_reference_pair_at(const rapt_attention_desc *desc, struct rapt_reference_pair *pair, int64_t b, int64_t h,
                            int64_t i, int64_t j);

/* Whether causal, window, trees and lists of key blocks let query i see key j. */
bool rapt_reference_is_visible(const rapt_attention_desc *desc, int64_t distance, int64_t b, int64_t h, int64_t i,
                               int64_t j);

/* Step 9, each if the call asks for it: LSE and state of a row whose sink has not joined. */
void rapt_reference_put_state(const rapt_attention_desc *desc, int64_t b, int64_t h, int64_t i,
                              const struct rapt_reference_state *row, int64_t value_dim);

void rapt_reference_put_out(const rapt_attention_desc *desc, int64_t b, int64_t h, int64_t i, const float *out,
                            int64_t value_dim);

/* The keys of a row: dot products, base-2 logits, softmax weights. */
struct rapt_reference_scores {
    const float *s, *t, *softmax;
    const bool *attended;
    float scale, factor;
};

void rapt_reference_put_weights(const rapt_attention_desc *desc, int64_t b, int64_t h, int64_t i,
                                const struct rapt_reference_scores *scores);

#endif
