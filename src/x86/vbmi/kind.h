/* SPDX-License-Identifier: MIT
 * Float8 keys and values by VBMI. */
#ifndef RAPT_X86_VBMI_KIND_H
#define RAPT_X86_VBMI_KIND_H

#include "kernels.h"

/* As the slots score, weigh and score_beside of narrow tiles, for float8 only. ASSUME VBMI. */
void rapt_score_float8(const struct rapt_score_args *args);
void rapt_weigh_float8(const struct rapt_weigh_args *args);
void rapt_score_beside_float8(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads);

/* The same, ASSUMING that all scales are 1. */
void rapt_score_float8_unscaled(const struct rapt_score_args *args);
void rapt_weigh_float8_unscaled(const struct rapt_weigh_args *args);
void rapt_score_beside_float8_unscaled(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                       int heads);

#endif
