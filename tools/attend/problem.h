/* SPDX-License-Identifier: MIT
 * From files to a descriptor: reads arrays, checks that they fit, allocates results. */
#ifndef RAPT_PROBLEM_H
#define RAPT_PROBLEM_H

#include "attend/options.h"
#include "files/npy.h"
#include "rapt/rapt.h"

struct problem {
    struct npy_array query, key, value;
    struct npy_array out, lse, weights; /* lse and weights: data = NULL if not requested */
    rapt_attention_desc desc;
    rapt_attention_desc stored; /* what runs: desc with keys and values in the requested types */
};

/* Dies if files are wrong or do not fit. Their memory lives until the command ends. */
struct problem problem_load(const struct attend_options *options);

/* Number i of a list; otherwise if there is none. */
int64_t problem_list_at(rapt_index_list list, int64_t i, int64_t otherwise);

/* Queries and keys of sequence b. */
int64_t problem_query_length(const struct problem *problem, int64_t b);
int64_t problem_kv_length(const struct problem *problem, int64_t b);

/* The position of query 0 of sequence b among its stored keys, if anything counts from it; else 0. */
int64_t problem_query_position(const struct problem *problem, int64_t b);

/* The number of (query, key) pairs within lengths, causal, window and lists of key blocks, over all heads. Masks and
 * trees are ignored. */
double problem_pairs(const struct problem *problem);

#endif
