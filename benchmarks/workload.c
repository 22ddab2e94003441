/* SPDX-License-Identifier: MIT */
#include "workload.h"

#include <stdio.h>
#include <string.h>

/* K or V: rows of so many numbers. */
static size_t kv_tensor_bytes(const struct workload_shape *shape, int64_t dim) {
    if (shape->kv_token_bytes)
        return (size_t)(shape->batch * shape->kv_length * shape->kv_token_bytes);
    const int64_t page = shape->page_tokens ? shape->page_tokens : 1;
    const int64_t tokens = (shape->kv_length + page - 1) / page * page;
    return (size_t)(shape->batch * shape->kv_heads * tokens * rapt_row_bytes(shape->kv_dtype, dim));
}

/* The same of queries and out. */
static size_t query_tensor_bytes(const struct workload_shape *shape, int64_t dim) {
    return (size_t)(shape->batch * shape->query_heads * shape->query_length *
                    rapt_row_bytes(workload_query_dtype(shape), dim));
}

static double attended_pairs(const struct workload_shape *shape, double queries, double keys) {
    if (shape->feature == FEATURE_TOP_KEYS)
        return queries * (double)shape->selected;
    if (shape->feature == FEATURE_KEY_BLOCKS)
        return queries * (double)(shape->selected * shape->block_keys);
    if (shape->feature != FEATURE_CAUSAL && shape->feature != FEATURE_MASK_CAUSAL)
        return queries * keys;
    double window = shape->window && (double)shape->window < queries ? (double)shape->window : queries;
    return window * (window + 1) / 2 + (queries - window) * window;
}

/* Keys of which something must be read. Many queries that select may together need all. */
static double keys_read(const struct workload_shape *shape, double queries, double keys) {
    const bool selects = shape->feature == FEATURE_TOP_KEYS || shape->feature == FEATURE_KEY_BLOCKS;
    return selects && shape->query_length == 1 ? attended_pairs(shape, queries, keys) : keys;
}

/* Unordered, as sequences arrive, with odd lengths among them. */
static void set_lengths(struct workload *workload) {
    const int64_t shortest = 37, longest = workload->shape.query_length, last = workload->shape.batch - 1;
    for (int64_t b = 0; b <= last; b++)
        workload->lengths[b] = (int32_t)(shortest + (longest - shortest) * (b * 5 % (last + 1)) / last);
}

static void count_work(struct workload *workload) {
    const struct workload_shape *shape = &workload->shape;
    double pairs = 0, query_tokens = 0, kv_tokens = 0;
    for (int64_t b = 0; b < shape->batch; b++) {
        double queries = shape->ragged ? workload->lengths[b] : (double)shape->query_length;
        double keys = shape->ragged ? queries : (double)shape->kv_length;
        pairs += attended_pairs(shape, queries, keys);
        query_tokens += queries;
        kv_tokens += keys_read(shape, queries, keys);
    }
    workload->pairs = pairs * (double)shape->query_heads;
    const double dims = (double)(shape->head_dim + shape->value_dim);
    workload->flops = 2 * dims * workload->pairs;
    const int64_t row_bytes = rapt_row_bytes(shape->kv_dtype, shape->head_dim) +
                              (shape->is_latent ? 0 : rapt_row_bytes(shape->kv_dtype, shape->value_dim));
    const double query_rows = query_tokens * (double)shape->query_heads;
    workload->bytes = (double)row_bytes * kv_tokens * (double)shape->kv_heads +
                      (double)rapt_row_bytes(workload_query_dtype(shape), 1) * dims * query_rows;
}

/* The size of the workspace does not depend on where the tensors lie, so one serves all regions. */
static rapt_status make_plans(struct workload *workload, rapt_message *why) {
    rapt_status status = RAPT_OK;
    for (int region = 0; status == RAPT_OK && region < workload->region_count; region++) {
        rapt_attention_desc desc = workload->desc;
        desc.key.data = (char *)desc.key.data + (size_t)region * workload->region_bytes;
        desc.value.data = (char *)desc.value.data + (size_t)region * workload->region_bytes;
        status = rapt_plan_init(&workload->plans[region], &desc, why);
    }
    if (status == RAPT_OK)
        status =
            rapt_plan_workspace_bytes(&workload->plans[0], workload->threads, &workload->workspace_bytes);
    return status;
}

bool workload_init(struct workload *workload, const struct workload_shape *shape, rapt_isa isa, int threads,
                   const struct arena *arena, size_t *cursor, rapt_message *why) {
    const size_t key_bytes = kv_tensor_bytes(shape, shape->head_dim);
    const size_t value_bytes = shape->is_latent ? 0 : kv_tensor_bytes(shape, shape->value_dim);
    const size_t query_bytes = query_tensor_bytes(shape, shape->head_dim);
    memset(workload, 0, sizeof *workload);
    workload->shape = *shape;
    workload->threads = threads;
    workload->cursor = cursor;
    workload->region_bytes = key_bytes + value_bytes;
    if (workload->region_bytes > arena->bytes || query_bytes > arena->bytes) {
        /* python/ab.py knows this text: no failure. */
        snprintf(why->text, sizeof why->text, "this machine has too little memory for the row");
        return false;
    }
    workload->region_count = cursor ? (int)arena_regions(arena, workload->region_bytes) : 1;
    workload->key = arena->base;
    workload->value = arena->base + (shape->is_latent ? 0 : key_bytes);
    workload->query = buffer_new(query_bytes);
    memcpy(workload->query, arena->base + arena->bytes - query_bytes, query_bytes);
    workload->out = buffer_new(query_tensor_bytes(shape, shape->value_dim));
    if (shape->ragged)
        set_lengths(workload);
    count_work(workload);
    workload_describe(workload, isa, arena);
    workload->status = make_plans(workload, why);
    workload->workspace = buffer_new(workload->workspace_bytes);
    if (workload->status != RAPT_OK && why->text[0] == '\0')
        snprintf(why->text, sizeof why->text, "%s", rapt_status_text(workload->status));
    if (workload->status != RAPT_OK)
        workload_free(workload);
    return workload->status == RAPT_OK;
}

static void run_plan(struct workload *workload, const rapt_plan *plan) {
    rapt_run_options options = {.struct_size = sizeof options, .max_threads = workload->threads};
    workload->status = rapt_run(plan, workload->workspace, workload->workspace_bytes, &options);
}

void workload_run(void *context) {
    struct workload *workload = context;
    size_t region = workload->cursor ? *workload->cursor : 0;
    run_plan(workload, &workload->plans[region]);
    if (workload->cursor)
        *workload->cursor = (region + 1) % (size_t)workload->region_count;
}

void workload_plan_and_run(void *context) {
    struct workload *workload = context;
    for (int call = 0; call < WORKLOAD_CALLS; call++) {
        rapt_plan plan;
        rapt_plan_init(&plan, &workload->desc, NULL);
        run_plan(workload, &plan);
    }
}

void workload_free(struct workload *workload) {
    buffer_free(workload->query);
    buffer_free(workload->out);
    buffer_free(workload->mask);
    buffer_free(workload->offsets);
    buffer_free(workload->entries);
    buffer_free(workload->pages);
    buffer_free(workload->workspace);
}
