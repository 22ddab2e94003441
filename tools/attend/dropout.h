/* SPDX-License-Identifier: MIT */
#ifndef RAPT_DROPOUT_H
#define RAPT_DROPOUT_H

#include "common/options.h"
#include "rapt/rapt.h"

/* Dies if --drop is given and no probability below 1. */
void dropout_check(struct option_number drop);

/* The keep mask for seed, in how's sizes. */
rapt_tensor dropout_draw(double drop, uint64_t seed, const rapt_attention_desc *how);

#endif
