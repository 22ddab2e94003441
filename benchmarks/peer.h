/* SPDX-License-Identifier: MIT
 *
 * What a C programmer would write without rapt: scores by BLAS, softmax over
 * the rows, output by BLAS. */
#ifndef RAPT_BENCHMARKS_PEER_H
#define RAPT_BENCHMARKS_PEER_H

#include "workload.h"

/* Which BLAS, or NULL where this build has none: nothing else exists then. */
const char *peer_describe(void);

/* OpenBLAS takes its oldest kernels on processors that it does not know; told
 * better ones, which works only at its start, it needs the program to begin
 * anew. Returns where that is not needed. */
void peer_prefer_kernels(char **argv);

struct peer {
    struct workload_shape shape; /* query_heads = kv_heads */
    const float *query, *key, *value;
    float *out, *scores, *sums;
    int64_t block_rows; /* query rows per matrix product; at first the fastest of some */
};

void peer_init(struct peer *peer, const struct workload *workload);
void peer_run(void *peer);
void peer_free(struct peer *peer);

/* Largest difference between the outputs of peer and workload, running both once. */
double peer_difference(struct peer *peer, struct workload *workload);

/* Turns scores into exp(score - maximum) and returns their sum. */
float peer_exp_row(float *scores, int64_t count);

#endif
