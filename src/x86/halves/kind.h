/* SPDX-License-Identifier: MIT
 * Narrow tiles of some rows where vectors are split, or their halves load fast. */
#ifndef RAPT_X86_HALVES_KIND_H
#define RAPT_X86_HALVES_KIND_H

#include "kernels.h"

/* Row counts of a format that have kernels by half squares, since these are faster where vectors are split, */
#define RAPT_HAS_HALF_SQUARES(format, rows)                                                                      \
    ((format) == RAPT_FORMAT_F32    ? (rows) >= 6                                                                \
     : (format) == RAPT_FORMAT_BF16 ? (rows) >= 3                                                                \
     : (format) == RAPT_FORMAT_Q8_0 ? (rows) >= 3 && (rows) <= 4                                                 \
     : (format) == RAPT_FORMAT_Q4_0 ? (rows) >= 3 && (rows) <= 6                                                 \
                                    : (format) == RAPT_FORMAT_F16 && (rows) >= 1)
/* and those for which they are faster where vectors are whole, too. */
#define RAPT_GAINS_BY_HALF_SQUARES(format, rows)                                                                 \
    (RAPT_HAS_HALF_SQUARES(format, rows) && (rows) >= 6 && (format) != RAPT_FORMAT_Q4_0)

/* Row counts that take two vectors of keys at once where vectors are whole. */
#define RAPT_HAS_TWO_VECTORS(format, rows)                                                                       \
    ((format) == RAPT_FORMAT_F32 || (format) == RAPT_FORMAT_F16 ? (rows) <= 6                                    \
                                                                : (format) == RAPT_FORMAT_BF16 && (rows) <= 7)

/* Row counts that take one vector, in shorter turns, where vectors are whole and turns of two would leave L1. */
#define RAPT_HAS_ONE_VECTOR(format, rows)                                                                        \
    (((format) == RAPT_FORMAT_F16 || (format) == RAPT_FORMAT_BF16) && (rows) <= 2)

/* As the slots score and score_beside of narrow tiles, with the same bits. ASSUME RAPT_HAS_HALF_SQUARES. */
void rapt_score_half_squares(const struct rapt_score_args *args);
void rapt_score_beside_half_squares(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                    int heads);

/* Likewise, two vectors of keys at a time. ASSUME RAPT_HAS_TWO_VECTORS. */
void rapt_score_two_vectors(const struct rapt_score_args *args);
void rapt_score_beside_two_vectors(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                   int heads);

/* Likewise, one vector of keys at a time. ASSUME RAPT_HAS_ONE_VECTOR. */
void rapt_score_beside_one_vector(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh,
                                  int heads);

#endif
