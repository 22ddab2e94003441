/* SPDX-License-Identifier: MIT */
#include "plan/listed.h"

#include "checked.h"

double rapt_listed_share(const rapt_attention_desc *desc) {
    const rapt_block_list *blocks = &desc->key_blocks;
    if (rapt_no_rows(desc) || desc->kv_length == 0)
        return 1;
    const int64_t query_blocks = rapt_quotient_up(desc->query_length, blocks->query_tokens);
    const int64_t key_blocks = rapt_quotient_up(desc->kv_length, blocks->key_tokens);
    const double lists = (blocks->batch_stride ? (double)desc->batch : 1) *
                         (blocks->head_stride ? (double)desc->kv_heads : 1) * (double)query_blocks;
    const double share = (double)blocks->entries.count / (lists * (double)key_blocks);
    return share < 1 ? share : 1;
}

int64_t rapt_rows_of_lists(const struct rapt_plan_body *plan, int64_t rows, int64_t most, int64_t tile) {
    enum { MOST_TRIES = 64 };
    int64_t of_list;
    if (!rapt_mul_fits(plan->desc.key_blocks.query_tokens, plan->group, &of_list) ||
        of_list >= rows || 2 * of_list < tile)
        return most;
    const int64_t parts = rapt_quotient_up(of_list, most);
    for (int more = 0; more < MOST_TRIES && more <= parts; more++)
        if (of_list % (parts + more) == 0)
            return of_list / (parts + more);
    return most;
}
