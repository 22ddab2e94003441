/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <stddef.h>
#include <string.h>

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
    sum = with_word(sum, work->heads);
    sum = with_word(sum, (int64_t)work->task_rows << 8 | work->kind << 2 | work->stages[0] << 1 | work->stages[1]);
    *digest = with_word(with_word(sum, a->desc.query_tokens), a->desc.kv_tokens);
}
