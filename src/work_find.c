/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <stddef.h>
#include <string.h>

static struct rapt_work repeated(const struct rapt_plan_body *a, int64_t batch) {
    struct rapt_work work = a->each;
    const int64_t heads = a->desc.kv_heads;
    work.batch = batch;
    work.first_task = batch * heads * work.row_blocks * work.splits;
    work.first_merge = batch * heads;
    work.first_state = batch * heads * work.chunks * rapt_state_bytes(work.task_rows, a->o_stride);
    return work;
}

struct rapt_work rapt_work_of_task(const struct rapt_plan_body *a, const struct rapt_work *table, int32_t phase,
                                   int64_t task) {
    RAPT_ASSUME(task >= 0 && task < (phase ? a->totals.all_merges : a->totals.all_tasks));
    if (!a->has_lists)
        return repeated(a, task / (a->desc.kv_heads * (phase ? 1 : a->each.row_blocks * a->each.splits)));
    int64_t low = 0, high = a->desc.batch - 1; /* the last work that begins no later than the task */
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if ((phase ? table[middle].first_merge : table[middle].first_task) <= task)
            low = middle;
        else
            high = middle - 1;
    }
    return table[low];
}

/* FNV-1a, by words; the shift brings upper bits down, which a product only moves up. */
static uint64_t with_word(uint64_t digest, int64_t word) {
    digest = (digest ^ (uint64_t)word) * 0x100000001b3;
    return digest ^ digest >> 32;
}

void rapt_work_digest(const struct rapt_plan_body *a, const struct rapt_work *work, uint64_t *digest) {
    int64_t words[offsetof(struct rapt_work, task_rows) / sizeof(int64_t)];
    memcpy(words, work, sizeof words);
    uint64_t sum = *digest ? *digest : 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        sum = with_word(sum, words[i]);
    sum = with_word(sum, (int64_t)work->task_rows << 8 | work->kind << 2 | work->stages[0] << 1 | work->stages[1]);
    *digest = with_word(with_word(sum, a->desc.query_tokens), a->desc.kv_tokens);
}
