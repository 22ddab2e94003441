/* SPDX-License-Identifier: MIT
 *
 * One attention call of the benchmark, planned and ready to run. */
#ifndef RAPT_BENCHMARKS_PROBLEM_H
#define RAPT_BENCHMARKS_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "rapt/rapt.h"

struct problem_shape {
    int64_t query_heads, kv_heads, query_length, kv_length, head_dim;
    bool causal;
};

enum { PROBLEM_MAX_REGIONS = 64 };

/* K and V fill a region of the arena. Decode reads the next region in each
 * run, so that no cache can hold what it reads; prefill has one region. */
struct problem {
    struct problem_shape shape;
    rapt_plan plans[PROBLEM_MAX_REGIONS];
    const float *key, *value; /* of region 0 */
    float *query, *out;
    size_t region_bytes;
    int region_count;
    size_t *cursor;
    void *workspace;
    size_t workspace_bytes;
    int threads;
    rapt_status status;  /* of the last run */
    double flops, bytes; /* of one run; bytes: each tensor once */
};

/* cursor counts regions, see stream_peak; NULL = one region. Returns whether
 * it worked, else says in why what did not. */
bool problem_init(struct problem *problem, const struct problem_shape *shape, rapt_isa isa, int threads,
                  const struct arena *arena, size_t *cursor, rapt_message *why);
void problem_run(void *problem);
void problem_free(struct problem *problem);

/* K and V of the shape. */
size_t problem_region_bytes(const struct problem_shape *shape);

#endif
