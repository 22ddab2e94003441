/* SPDX-License-Identifier: MIT
 *
 * What a C programmer would write without rapt: scores by BLAS, softmax over the rows, output by BLAS. */
#ifndef RAPT_BENCHMARKS_PEER_H
#define RAPT_BENCHMARKS_PEER_H

#include "workload.h"

/* Which BLAS, or NULL if this build has none: the rest is then absent. */
const char *peer_describe(void);

/* OpenBLAS falls back to its oldest kernels on processors that it does not know. It can be told better ones only at its
 * start, so this restarts the program. Returns if that is unnecessary. */
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

/* Largest difference between the outputs of peer and workload; runs both once. */
double peer_difference(struct peer *peer, struct workload *workload);

/* Turns scores into exp(score - maximum) and returns their sum. */
float peer_exp_row(float *scores, int64_t count);

#endif
