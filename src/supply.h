/* SPDX-License-Identifier: MIT
 * Keys and values on their way to the kernels: where the block at hand lies,
 * in place or staged, and the next one brought closer meanwhile. */
#ifndef RAPT_SUPPLY_H
#define RAPT_SUPPLY_H

#include "kv.h"
#include "task.h"

struct rapt_supply {
    const struct rapt_task *task, *next_task; /* next_task: which this thread is likely to get; NULL = none */
    bool staged;               /* blocks are copied to contiguous rows */
    struct rapt_arrival {
        const struct rapt_task *task;
        struct rapt_span keys; /* positions */
        int64_t keys_ready, values_ready; /* how many were fetched or copied */
        char *key, *value;     /* where they are copied to */
    } here, next, beyond;      /* beyond: the first block of next_task, which is next behind the last of this one */
};

void rapt_supply_open(struct rapt_supply *supply, const struct rapt_task *task, const struct rapt_task *next_task);

/* Makes the block at position base the one at hand. Blocks come in ascending order. */
void rapt_supply_block(struct rapt_supply *supply, int64_t base);

/* Keys that follow each other at one stride, from positions.begin on, within the block at hand. */
struct rapt_kv_run rapt_supply_locate(const struct rapt_supply *supply, struct rapt_span positions);

/* What a score call fetches beside its work: as many rows of the next block as it has keys. Of several tiles the first
 * ones fetch keys and then values; a tile that is alone has time for the keys. */
void rapt_supply_fetch(struct rapt_supply *supply, struct rapt_score_args *args, int tiles);

/* A tile that is alone fetches the values of the next block while it weighs those at hand: adds them to list. */
void rapt_supply_list_values(struct rapt_supply *supply, struct rapt_fetch_list *list);

#endif
