/* SPDX-License-Identifier: MIT
 * Shared by the tests of vector operations. */
#ifndef RAPT_TESTS_VECTORS_CHECK_H
#define RAPT_TESTS_VECTORS_CHECK_H

#include "kernels/vectors.h"
#include "support/support.h"

/* Zeros, denormals, infinities, NaN, the largest, rounding ties, halves and the integers' ends. */
enum { SPECIALS = 45 };
float special(int64_t number); /* modulo SPECIALS */

/* vectors_memory.c: operations that only move values. */
void test_constants(const struct vector_table *table);
void test_parts(const struct vector_table *table);
void test_bools(const struct vector_table *table);
void test_bits(const struct vector_table *table);
void test_codes(const struct vector_table *table);
void test_squares(const struct vector_table *table);
void test_bytes(const struct vector_table *table); /* vectors_bytes.c: to float8 and integers; the largest lane */

/* vectors_rounding.c: to binary16 and bfloat16. */
void test_rounding(const struct vector_table *table);

/* vectors_stored.c: numbers of a byte or less. */
void test_float8(const struct vector_table *table);
void test_nibbles(const struct vector_table *table);
void test_words(const struct vector_table *table);

#endif
