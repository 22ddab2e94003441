/* SPDX-License-Identifier: MIT
 * Random keys and values of every storage type, from the lines of format.def. */
#ifndef RAPT_TESTS_STORED_H
#define RAPT_TESTS_STORED_H

#include "support/support.h"

/* Fills `count` blocks of a format with numbers below 4; special: with any, infinities and NaN included if the format
 * has them. */
void stored_draw(struct random *random, int format, void *blocks, int64_t count, bool special);

static inline bool stored_is_key_value(int format) { return rapt_format_info(format)->uses & RAPT_USE_KEY_VALUE; }

static inline bool stored_may_scale(int format) { return rapt_format_info(format)->uses & RAPT_MAY_SCALE; }

/* The dtype of a format. */
int32_t stored_dtype(int format);
const char *stored_name(int format);

#endif
