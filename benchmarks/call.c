/* SPDX-License-Identifier: MIT */
#include "call.h"

#include "measure.h"
#include "memory.h"
#include "peaks.h"
#include "rapt/rapt.h"

#include <stdio.h>
#include <stdlib.h>

struct call {
    rapt_plan plan;
    int threads;
};

/* Shared by all calls, as by the layers of a model. */
static void *workspace;
static size_t workspace_bytes;

static struct arena arena;

static rapt_status grow_workspace(const struct call *call) {
    size_t bytes = 0;
    rapt_status status = rapt_plan_workspace_bytes(&call->plan, call->threads, &bytes);
    if (status == RAPT_OK && bytes > workspace_bytes) {
        buffer_free(workspace);
        workspace = buffer_new(bytes);
        workspace_bytes = bytes;
    }
    return status;
}

/* Each sequence has as many pages as its keys fill. */
static rapt_page_table page_table(const struct call_shape *shape) {
    const int64_t each = (shape->kv_length + shape->page_tokens - 1) / shape->page_tokens;
    return (rapt_page_table){.kind = RAPT_PAGES_DENSE,
                             .page_tokens = shape->page_tokens,
                             .pages = shape->batch * each,
                             .entries = rapt_int32_list(shape->pages, shape->batch * each),
                             .batch_stride_bytes = each * (int64_t)sizeof(int32_t)};
}

static rapt_tensor cache_tensor(const struct call_shape *shape, const void *data, int64_t batch, int64_t tokens) {
    const bool scaled = shape->key_value == RAPT_I8;
    const int64_t dim = shape->head_dim + (scaled ? (int64_t)sizeof(float) : 0);
    rapt_tensor tensor = rapt_tensor_bhsd(data, shape->key_value, batch, shape->kv_heads, tokens, dim);
    if (!scaled)
        return tensor;
    tensor.scale_dtype = RAPT_F32;
    tensor.scales = (char *)tensor.data + shape->head_dim;
    tensor.scale_token_stride_bytes = tensor.token_stride_bytes;
    tensor.scale_head_stride_bytes = tensor.head_stride_bytes;
    tensor.scale_batch_stride_bytes = tensor.batch_stride_bytes;
    return tensor;
}

static void describe_cache(rapt_attention_desc *desc, const struct call_shape *shape, const void *key,
                           const void *value) {
    int64_t batch = shape->batch, tokens = shape->kv_length;
    if (shape->page_tokens) {
        desc->key_pages = desc->value_pages = page_table(shape);
        batch = desc->key_pages.pages;
        tokens = shape->page_tokens;
    }
    desc->key = cache_tensor(shape, key, batch, tokens);
    desc->value = cache_tensor(shape, value, batch, tokens);
    if (shape->page_tokens) {
        desc->key.page_stride_bytes = desc->value.page_stride_bytes = desc->key.batch_stride_bytes;
        desc->key.batch_stride_bytes = desc->value.batch_stride_bytes = 0;
    }
    desc->value_dim = shape->value_dim < shape->head_dim ? shape->value_dim : 0;
}

struct call *call_new(const struct call_shape *shape, const void *query, const void *key, const void *value,
                      void *out, char *why, size_t why_bytes) {
    const int32_t ends = shape->numerics == RAPT_NUMERICS_ORDER_2 ? shape->key_value : RAPT_F32;
    struct call *call = malloc(sizeof *call);
    rapt_message message = {""};
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.isa = shape->isa;
    desc.batch = shape->batch;
    desc.query_heads = shape->query_heads;
    desc.kv_heads = shape->kv_heads;
    desc.query_length = shape->query_length;
    desc.kv_length = shape->kv_length;
    desc.head_dim = shape->head_dim;
    desc.numerics = shape->numerics;
    desc.query = rapt_tensor_bhsd(query, ends, shape->batch, shape->query_heads, shape->query_length, shape->head_dim);
    desc.out = rapt_tensor_bhsd(out, ends, shape->batch, shape->query_heads, shape->query_length, shape->value_dim);
    describe_cache(&desc, shape, key, value);
    desc.features = (shape->causal ? RAPT_CAUSAL : 0) | (shape->window ? RAPT_WINDOW : 0);
    desc.query_origin = shape->causal || shape->window ? RAPT_ORIGIN_BOTTOM_RIGHT : RAPT_ORIGIN_UNSTATED;
    desc.window_left = shape->window ? shape->window - 1 : 0;
    rapt_status status = call ? rapt_plan_init(&call->plan, &desc, &message) : RAPT_OUT_OF_MEMORY;
    if (status == RAPT_OK) {
        call->threads = shape->threads;
        status = grow_workspace(call);
    }
    if (status == RAPT_OK)
        return call;
    snprintf(why, why_bytes, "%s", message.text[0] ? message.text : rapt_status_text(status));
    free(call);
    return NULL;
}

void call_free(struct call *call) {
    free(call);
}

int call_isa(const struct call *call) { return (int)rapt_plan_isa(&call->plan); }

int call_run(struct call *const *calls, int64_t first, int64_t count, int64_t times, double *seconds) {
    rapt_status status = RAPT_OK;
    for (int64_t i = 0; i < times; i++) {
        const struct call *call = calls[(first + i) % count];
        rapt_run_options options = {.struct_size = sizeof options, .max_threads = call->threads};
        double begin = now_seconds();
        rapt_status one = rapt_run(&call->plan, workspace, workspace_bytes, &options);
        seconds[i] = now_seconds() - begin;
        status = one == RAPT_OK ? status : one;
    }
    return (int)status;
}

void *call_memory(size_t *bytes) {
    if (!arena.base && !arena_init(&arena))
        return NULL;
    *bytes = arena.bytes;
    return arena.base;
}

static void run(const struct contender *contender, int64_t times, double *seconds) {
    for (int64_t i = 0; i < times; i++) {
        double begin = now_seconds();
        contender->run(contender->context);
        seconds[i] = now_seconds() - begin;
    }
}

double call_fma(int isa, int threads, int64_t times, double *seconds) {
    struct fma_peak peak;
    if (!peak_known((rapt_isa)isa) || threads > peak_threads())
        return 0;
    fma_peak_init(&peak, (rapt_isa)isa, threads);
    run(&peak.contender, times, seconds);
    return peak.flops;
}

double call_stream(int isa, int threads, int64_t eighth, int64_t times, double *seconds) {
    static bool chosen;
    size_t cursor = (size_t)eighth;
    static unsigned calls; /* alternates ways to read */
    struct stream_peak peak;
    char text[128];
    if (!peak_known((rapt_isa)isa) || threads > peak_threads() || !arena.base)
        return 0;
    if (!chosen) /* units have no reads of their own */
        stream_choose(&arena, peak_is_of_unit((rapt_isa)isa) ? RAPT_ISA_AVX512 : (rapt_isa)isa, text, sizeof text);
    chosen = true;
    stream_peak_init(&peak, &arena, arena.bytes / 8, &cursor, threads);
    peak.calls = calls;
    run(&peak.contender, times, seconds);
    calls = peak.calls;
    return (double)peak.region_bytes;
}
