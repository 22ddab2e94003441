/* SPDX-License-Identifier: MIT */
#ifndef RAPT_DROPOUT_H
#define RAPT_DROPOUT_H

#include "rapt/rapt.h"

/* The keep mask that seed gives, for how's sizes. */
rapt_tensor dropout_draw(double drop, uint64_t seed, const rapt_attention_desc *how);

#endif
