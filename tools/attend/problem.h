/* SPDX-License-Identifier: MIT
 * From files to a descriptor: reads the arrays, checks that they fit together, makes room for the results. */
#ifndef RAPT_PROBLEM_H
#define RAPT_PROBLEM_H

#include "attend/options.h"
#include "files/npy.h"
#include "rapt/rapt.h"

struct problem {
    struct npy_array query, key, value;
    struct npy_array out, lse, weights; /* lse and weights: data = NULL where nobody wants them */
    rapt_attention_desc desc;
    rapt_attention_desc stored; /* what runs: desc with keys and values in the types that were asked for */
};

/* Dies where files are wrong or do not fit. Their memory lives until the command ends. */
struct problem problem_load(const struct attend_options *options);

/* Number i of a list; otherwise where there is none. */
int64_t problem_list_at(rapt_index_list list, int64_t i, int64_t otherwise);

/* Queries and keys of sequence b. */
int64_t problem_query_length(const struct problem *problem, int64_t b);
int64_t problem_kv_length(const struct problem *problem, int64_t b);

/* Which of its stored keys query 0 of sequence b stands at, as far as something counts from it; else 0. */
int64_t problem_query_position(const struct problem *problem, int64_t b);

/* How many (query, key) pairs lengths, causal, window and lists of key blocks let through, over all heads. Masks and
 * trees are not looked at. */
double problem_pairs(const struct problem *problem);

#endif
