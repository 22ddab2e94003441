/* SPDX-License-Identifier: MIT
 * Steps of the layers' model, for one row or one pair at a time. */
#ifndef RAPT_TESTS_FUZZ_LAYERS_MODEL_H
#define RAPT_TESTS_FUZZ_LAYERS_MODEL_H

#include "layers_decode.h"

/* Rounded once; there is one NaN. */
float rounded(double x);

/* The result, or memory for it, if there is none. */
float *room(float *given, int64_t count);

/* One row by all inputs of a linear layer, or by inputs first ... first + width - 1. */
void project(const rapt_linear *linear, const float *x, float *out);
void project_part(const rapt_linear *linear, int64_t first, int64_t width, const float *x, float *out);

/* out = a + b */
void add(const float *a, const float *b, int64_t count, float *out);

void normalise(const rapt_norm *norm, const float *x, int64_t width, float *out);

/* v . tanh(a + b) */
float additive_score(const float *v, const float *a, const float *b, int64_t units);

/* Whether a row of [batch][query_length] is a query. */
bool exists(const rapt_attention_desc *how, int64_t row);

/* Heads side by side in rows of [batch][tokens][row]. */
rapt_tensor heads_at(const float *rows, int64_t tokens, int64_t row, int64_t first, int64_t step);

/* query . key of all keys; nothing if scores is NULL. */
void write_scores(const rapt_attention_desc *how, float *scores);

/* Scores, [batch][query_length][kv_length], as a bias on products that are 0. */
void attend_to(rapt_attention_desc *how, const float *scores);

/* By the specification. */
void run_attention(const rapt_attention_desc *how);

/* layers_model_luong.c */
void model_luong(const void *desc);

#endif
