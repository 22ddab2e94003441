/* SPDX-License-Identifier: MIT
 * The rows of queries that exist. Those from query_lengths[b] on are not written, so no step may read them either:
 * in scratch memory they are whatever malloc left there. */
#ifndef RAPT_LAYERS_ROWS_H
#define RAPT_LAYERS_ROWS_H

#include "layers/call.h"

/* Queries of sequence b. ASSUME rapt_call_check has passed; never more than query_length, even if the list has
 * changed since. */
int64_t rapt_queries_of(const rapt_attention_desc *all, int64_t b);

/* Contiguous rows of [batch][query_length] that exist. Begins as {0}. */
struct rapt_rows_of_queries {
    int64_t first, count;
    int64_t batch; /* the next sequence */
};

/* Moves to the next rows; false if there are none. */
bool rapt_next_rows(const rapt_attention_desc *all, struct rapt_rows_of_queries *rows);

/* out = linear(x) in the rows that exist; x is [batch][query_length][linear->in], out [..][linear->out]. */
void rapt_project_queries(struct rapt_call *call, const rapt_attention_desc *all, const rapt_linear *linear,
                          const float *x, float *out);

#endif
