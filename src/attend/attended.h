/* SPDX-License-Identifier: MIT
 * The keys of a block that masks leave, if these are few: they get numbers from 0 on, and everything that acts on
 * them is copied, so that slots see a short block without gaps. */
#ifndef RAPT_ATTENDED_H
#define RAPT_ATTENDED_H

#include "attend/task.h"

/* Of a set of keys, a bit for each key of the block: how many, the first, and the one after the last. */
struct rapt_attended_range {
    int count, begin, end;
};

struct rapt_attended_range rapt_count_attended(const uint32_t attended[RAPT_BLOCK_KEYS / 32]);

/* Their places, ascending; returns how many. */
int rapt_places_of(const uint32_t attended[RAPT_BLOCK_KEYS / 32], uint8_t place[RAPT_BLOCK_KEYS]);

/* Numbers these keys. mask: of so many rows of the task; ASSUME its keys are numbered by place. */
void rapt_number_attended(const struct rapt_task *task, int rows, const uint32_t attended[RAPT_BLOCK_KEYS / 32],
                          struct rapt_tile_mask *mask);

#endif
