/* SPDX-License-Identifier: MIT */
#include "problem.h"

#include <stdio.h>
#include <string.h>

size_t problem_region_bytes(const struct problem_shape *shape) {
    return (size_t)(2 * shape->kv_heads * shape->kv_length * shape->head_dim) * sizeof(float);
}

static double attended_pairs(const struct problem_shape *shape) {
    double queries = (double)shape->query_length, keys = (double)shape->kv_length;
    return shape->causal ? queries * (queries + 1) / 2 : queries * keys;
}

static void count_work(struct problem *problem) {
    const struct problem_shape *shape = &problem->shape;
    double heads = (double)shape->query_heads, dim = (double)shape->head_dim;
    problem->flops = 4 * heads * dim * attended_pairs(shape);
    problem->bytes =
        (double)problem->region_bytes + 2 * heads * (double)shape->query_length * dim * sizeof(float);
}

static rapt_attention_desc describe(const struct problem *problem, rapt_isa isa, int region) {
    const struct problem_shape *shape = &problem->shape;
    const size_t floats = (size_t)region * problem->region_bytes / sizeof(float);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.features = shape->causal ? RAPT_CAUSAL : 0;
    desc.isa = isa;
    desc.batch = 1;
    desc.query_heads = shape->query_heads;
    desc.kv_heads = shape->kv_heads;
    desc.query_length = shape->query_length;
    desc.kv_length = shape->kv_length;
    desc.head_dim = shape->head_dim;
    desc.query = rapt_tensor_bhsd(problem->query, shape->query_heads, shape->query_length, shape->head_dim);
    desc.out = rapt_tensor_bhsd(problem->out, shape->query_heads, shape->query_length, shape->head_dim);
    desc.key = rapt_tensor_bhsd(problem->key + floats, shape->kv_heads, shape->kv_length, shape->head_dim);
    desc.value =
        rapt_tensor_bhsd(problem->value + floats, shape->kv_heads, shape->kv_length, shape->head_dim);
    return desc;
}

/* The size of the workspace does not depend on where the tensors lie, so one serves all regions. */
static rapt_status make_plans(struct problem *problem, rapt_isa isa, rapt_message *why) {
    rapt_status status = RAPT_OK;
    for (int region = 0; status == RAPT_OK && region < problem->region_count; region++) {
        rapt_attention_desc desc = describe(problem, isa, region);
        status = rapt_plan_init(&problem->plans[region], &desc, why);
    }
    if (status == RAPT_OK)
        status = rapt_plan_workspace_bytes(&problem->plans[0], problem->threads, &problem->workspace_bytes);
    return status;
}

bool problem_init(struct problem *problem, const struct problem_shape *shape, rapt_isa isa, int threads,
                  const struct arena *arena, size_t *cursor, rapt_message *why) {
    const size_t query_bytes =
        (size_t)(shape->query_heads * shape->query_length * shape->head_dim) * sizeof(float);
    memset(problem, 0, sizeof *problem);
    problem->shape = *shape;
    problem->threads = threads;
    problem->cursor = cursor;
    problem->region_bytes = problem_region_bytes(shape);
    if (problem->region_bytes + query_bytes > arena->bytes &&
        (problem->region_bytes > arena->bytes || !cursor)) {
        snprintf(why->text, sizeof why->text, "this machine has too little memory for the row");
        return false;
    }
    size_t regions = cursor ? arena->bytes / problem->region_bytes : 1;
    problem->region_count = regions < PROBLEM_MAX_REGIONS ? (int)regions : PROBLEM_MAX_REGIONS;
    problem->key = (const float *)(const void *)arena->base;
    problem->value = problem->key + problem->region_bytes / 2 / sizeof(float);
    problem->query = buffer_new(query_bytes);
    memcpy(problem->query, arena->base + arena->bytes - query_bytes, query_bytes);
    problem->out = buffer_new(query_bytes);
    count_work(problem);
    problem->status = make_plans(problem, isa, why);
    problem->workspace = buffer_new(problem->workspace_bytes);
    if (problem->status != RAPT_OK && why->text[0] == '\0')
        snprintf(why->text, sizeof why->text, "%s", rapt_status_text(problem->status));
    if (problem->status != RAPT_OK)
        problem_free(problem);
    return problem->status == RAPT_OK;
}

void problem_run(void *context) {
    struct problem *problem = context;
    rapt_run_options options = {.struct_size = sizeof options, .max_threads = problem->threads};
    size_t region = problem->cursor ? *problem->cursor : 0;
    problem->status =
        rapt_run(&problem->plans[region], problem->workspace, problem->workspace_bytes, &options);
    if (problem->cursor)
        *problem->cursor = (region + 1) % (size_t)problem->region_count;
}

void problem_free(struct problem *problem) {
    buffer_free(problem->query);
    buffer_free(problem->out);
    buffer_free(problem->workspace);
}
