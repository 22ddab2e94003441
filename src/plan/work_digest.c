/* SPDX-License-Identifier: MIT */
#include "plan/work.h"

#include <stddef.h>
#include <string.h>

/* FNV-1a, by words; the shift brings upper bits down, as products only move up. */
static uint64_t with_word(uint64_t digest, int64_t word) {
    digest = (digest ^ (uint64_t)word) * 0x100000001b3;
    return digest ^ digest >> 32;
}

/* What lists are checked against when a workspace is prepared: works that fit one plan fit the other. */
static uint64_t of_bounds(const rapt_attention_desc *desc) {
    const rapt_page_table *const tables[] = {&desc->key_pages, &desc->value_pages};
    const int64_t lengths[] = {desc->query_length, desc->kv_length, desc->query_tokens, desc->kv_tokens};
    uint64_t sum = 1;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        sum = with_word(sum, lengths[i]);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        sum = with_word(with_word(sum, tables[i]->kind), tables[i]->page_tokens);
        sum = with_word(with_word(sum, tables[i]->pages), tables[i]->entries.count);
    }
    return sum;
}

void rapt_work_digest(const struct rapt_plan_body *plan, const struct rapt_work *work, uint64_t *digest) {
    int64_t words[offsetof(struct rapt_work, task_rows) / sizeof(int64_t)];
    memcpy(words, work, sizeof words);
    uint64_t sum = *digest ? *digest : of_bounds(&plan->desc);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        sum = with_word(sum, words[i]);
    sum = with_word(sum, work->heads);
    *digest = with_word(sum, (int64_t)work->task_rows << 8 | work->kind << 2 | work->stages[0] << 1 | work->stages[1]);
}
