/* SPDX-License-Identifier: MIT */
#include "layers/rows.h"

int64_t rapt_queries_of(const rapt_attention_desc *all, int64_t b) {
    const int64_t length = all->query_lengths.data ? rapt_call_index(all->query_lengths, b) : all->query_length;
    return length < 0 ? 0 : length < all->query_length ? length : all->query_length;
}

bool rapt_next_rows(const rapt_attention_desc *all, struct rapt_rows_of_queries *rows) {
    const int64_t most = all->query_length;
    rows->count = 0;
    if (!all->query_lengths.data && rows->batch == 0) {
        rows->batch = all->batch;
        rows->count = all->batch * most;
    }
    for (int64_t length = most; rows->batch < all->batch && (length == most || rows->count == 0); rows->batch++) {
        length = rapt_queries_of(all, rows->batch);
        if (rows->count == 0)
            rows->first = rows->batch * most;
        rows->count += length;
    }
    return rows->count > 0;
}

void rapt_project_queries(struct rapt_call *call, const rapt_attention_desc *all, const rapt_linear *linear,
                          const float *x, float *out) {
    struct rapt_rows_of_queries rows = {0};
    while (call->status == RAPT_OK && rapt_next_rows(all, &rows))
        rapt_call_project(call, linear, x + rows.first * linear->in, rows.count, out + rows.first * linear->out, 0);
}
