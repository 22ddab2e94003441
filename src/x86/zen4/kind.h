/* SPDX-License-Identifier: MIT
 * Narrow tiles of some rows where vectors are split, or their halves load fast. */
#ifndef RAPT_X86_ZEN4_KIND_H
#define RAPT_X86_ZEN4_KIND_H

#include "kernels.h"

/* Row counts of a format for which these are faster where vectors are split, */
#define RAPT_IS_SPLIT(format, rows)                                                                              \
    ((format) == RAPT_FORMAT_F32    ? (rows) >= 6                                                                \
     : (format) == RAPT_FORMAT_BF16 ? (rows) >= 3                                                                \
     : (format) == RAPT_FORMAT_Q8_0 ? (rows) >= 3 && (rows) <= 4                                                 \
     : (format) == RAPT_FORMAT_Q4_0 ? (rows) >= 3 && (rows) <= 6                                                 \
                                    : (format) == RAPT_FORMAT_F16 && (rows) >= 1)
/* and where they are not. */
#define RAPT_IS_HALVED(format, rows) (RAPT_IS_SPLIT(format, rows) && (rows) >= 6 && (format) != RAPT_FORMAT_Q4_0)

/* As the slots score and score_beside of narrow tiles, with the same bits. ASSUME RAPT_IS_SPLIT. */
void rapt_score_split(const struct rapt_score_args *args);
void rapt_score_beside_split(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads);

#endif
