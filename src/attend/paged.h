/* SPDX-License-Identifier: MIT
 * Where the pages of a sequence lie. */
#ifndef RAPT_PAGED_H
#define RAPT_PAGED_H

#include "attend/task.h"
#include "pages.h"

/* What it takes to look up pages, and the rows of a KV head in them. */
struct rapt_paged {
    const rapt_page_table *table;
    const char *base; /* token 0 of page 0 */
    int64_t batch, first, page_tokens, page_stride_bytes, token_stride_bytes;
};

static inline struct rapt_paged rapt_paged_of(const struct rapt_task *task, int side) {
    const rapt_page_table *table = rapt_pages_of(&task->plan->desc, side);
    const rapt_tensor *tensor = rapt_tensor_of(task->plan, side);
    return (struct rapt_paged){.table = table,
                               .base = rapt_row(tensor, 0, task->kv_head, 0),
                               .batch = task->work.batch,
                               .first = task->work.sequence.kv_first[side],
                               .page_tokens = table->page_tokens,
                               .page_stride_bytes = tensor->page_stride_bytes,
                               .token_stride_bytes = tensor->token_stride_bytes};
}

/* The tensor's number of page `page` of the sequence. */
static inline int64_t rapt_paged_number(const struct rapt_paged *pages, int64_t page) {
    return rapt_page_at(pages->table, pages->batch, pages->first, page);
}

/* A token of a page by its number in the tensor. */
static inline const char *rapt_paged_row(const struct rapt_paged *pages, int64_t number, int64_t within) {
    return pages->base + number * pages->page_stride_bytes + within * pages->token_stride_bytes;
}

#endif
