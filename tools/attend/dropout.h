/* SPDX-License-Identifier: MIT */
#ifndef RAPT_DROPOUT_H
#define RAPT_DROPOUT_H

#include "common/options.h"
#include "rapt/rapt.h"

/* Dies where --drop is given and not a probability below 1. */
void dropout_check(struct option_number drop);

/* The keep mask that seed gives, for how's sizes. */
rapt_tensor dropout_draw(double drop, uint64_t seed, const rapt_attention_desc *how);

#endif
