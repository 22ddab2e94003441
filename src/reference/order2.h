/* SPDX-License-Identifier: MIT
 * Orders 2 and 3 of docs/numerics.md in scalar code: attention on the products of matrix units. It shares nothing with
 * the library. */
#ifndef RAPT_REFERENCE_ORDER2_H
#define RAPT_REFERENCE_ORDER2_H

#include "reference/reference.h"

/* ---- reference/unit.c: the matrix unit */

enum { RAPT_UNIT_TERMS = 32 }; /* products of a step: a row of a tile */

/* One step: C + (sum of the even products + sum of the odd ones), each sum a chain of so many FMAs from +0. Numbers are
 * bits of float32: bfloat16 and float16 widened exactly. */
uint32_t rapt_unit_dot(uint32_t c, const uint32_t *a, const uint32_t *b, int64_t pairs);

/* Its parts, in integers: denormal inputs count as 0, results that are tiny after rounding become 0. Returns the first
 * NaN among the arguments. */
uint32_t rapt_unit_fma(uint32_t a, uint32_t b, uint32_t c);
uint32_t rapt_unit_add(uint32_t x, uint32_t y);

/* a . b as steps of 32 from +0, the last one padded with zeros. */
float rapt_reference_unit(const float *a, const float *b, int64_t count);

/* Order 3: the same for float32 numbers: six steps per 32 terms, of parts of a and parts of b. */
float rapt_reference_unit_split(const float *a, const float *b, int64_t count);

/* ---- reference/order2_steps.c */

float rapt_order2_exp2(float x, bool is_half); /* p(x), not yet rounded */
float rapt_order2_alpha(float k);              /* A(k) */

/* As those of order 1 (reference/reference.h), with any maximum. */
void rapt_order2_load_state(struct rapt_reference_state *into, const float *row, int64_t value_dim);
void rapt_order2_fold(struct rapt_reference_state *into, const struct rapt_reference_state *next, int64_t value_dim);
void rapt_order2_sink(struct rapt_reference_state *row, float sink_log2e, int64_t value_dim);

/* ---- reference/order2.c */

/* rapt_reference_attention for a descriptor with numerics 2 or 3 and float32 keys and values [batch, kv_heads,
 * kv_length, dim]; in order 2 these are widened from the type of the query: bfloat16 or float16. */
void rapt_reference_order2(const rapt_attention_desc *desc);

#endif
