/* SPDX-License-Identifier: MIT
 * The cases of tests/data/layers, and the layers' tolerances: every result is within four times (`slack`) the error of
 * PyTorch's float32 result against the float64 one, at least 2^-21 of the largest number. */
#ifndef RAPT_TESTS_LAYERS_DATA_H
#define RAPT_TESTS_LAYERS_DATA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files/npy.h"
#include "rapt/layers.h"

/* This round's settings: every round repeats all cases, and all rounds give the same bits. */
extern rapt_isa layers_isa;
extern int32_t layers_threads;

/* Of layers_threads. */
const rapt_run_options *layers_options(void);

void layers_begin(const char *folder);

/* Sets the case for load, floats and expect; slack: of its tolerance. */
void layers_case(const char *name, double slack);

/* NAME.npy of the case. */
struct npy_array load(const char *name, unsigned accepted);
const float *floats(const char *name);
/* An int32 or bool mask as bytes. */
const unsigned char *mask_bytes(const char *name);
/* A new array of NaN; freed by layers_end_round. */
float *results(int64_t count);

/* Linear layers of the case; out and in come from the weight's shape, the bias may be NULL. */
rapt_linear linear(const char *weight, const char *bias);
rapt_linear linear_in_out(const char *weight);

/* got, shaped as NAME.npy, is within the tolerance of NAME64.npy. */
void expect(const char *name, const float *got);
/* The same if only the values of some adjacent heads are available: got is [batch][tokens][row], head h at first + h *
 * step, and NAME is [batch, heads, tokens, dim]. */
void expect_heads(const char *name, const float *got, int64_t row, int64_t first, int64_t step);
/* The numbers that the tutorial prints, four decimals. */
void expect_digits(const float *got, const float *digits, int64_t count);

void expect_ok(rapt_status status, const rapt_message *message);

/* Compares the round's bits with the first round's, frees what `results` allocated. */
void layers_end_round(void);
/* Errors beside PyTorch's, result by result. */
void layers_print_table(void);

/* Sizes into a descriptor with one number of heads. */
rapt_attention_desc attention(int64_t batch, int64_t heads, int64_t query_length, int64_t kv_length);
/* Requests weights after softmax, to be compared with NAME. */
float *ask_weights(rapt_attention_desc *desc);

/* The files of cases; each runs all of its cases. */
void cases_self_attention(void);
void cases_dot_product(void);
void cases_heads(void);
void cases_gpt2(void);
void cases_encoder(void);
void cases_older(void);

#endif
