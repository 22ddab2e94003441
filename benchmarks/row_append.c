/* SPDX-License-Identifier: MIT
 *
 * Rows of rapt_append: new keys and values from successive regions of the arena into successive regions of a pool, in
 * turns with memcpy of as many bytes. "append/f16/d128/h8/n4096", and /paged16: slots in pages of 16 tokens, /rotary:
 * keys are rotated. float8 has one scale, int8 computes one per token and head. */
#include "row_kinds.h"

#include "rapt/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_BYTES = 256 << 20 };

static const struct {
    const char *name;
    int32_t dtype;
} dtypes[] = {{"f32", RAPT_F32},       {"f16", RAPT_F16},       {"bf16", RAPT_BF16}, {"q8_0", RAPT_Q8_0},
              {"q4_0", RAPT_Q4_0},     {"q4_1", RAPT_Q4_1},     {"q5_0", RAPT_Q5_0}, {"q5_1", RAPT_Q5_1},
              {"iq4_nl", RAPT_IQ4_NL}, {"e4m3", RAPT_F8_E4M3}, {"e5m2", RAPT_F8_E5M2}, {"i8", RAPT_I8}};

struct append {
    rapt_append_desc desc;
    const struct arena *arena;
    char *pool;
    size_t read_bytes, written_bytes; /* of keys, and of values */
    size_t reads, writes;             /* regions so far */
    int64_t *slots, position;
    float *scales; /* those of keys, of values */
    int threads;
    rapt_status status; /* of the last run */
};

static const char *next_source(struct append *a) {
    return a->arena->base + a->reads++ % (a->arena->bytes / a->read_bytes) * a->read_bytes;
}

static char *next_target(struct append *a) {
    return a->pool + a->writes++ % (POOL_BYTES / a->read_bytes) * a->read_bytes;
}

static void append_run(void *context) {
    struct append *a = context;
    const rapt_run_options options = {.struct_size = sizeof options, .max_threads = a->threads};
    rapt_append_desc desc = a->desc;
    desc.key.data = (void *)(uintptr_t)next_source(a);
    desc.value.data = (void *)(uintptr_t)next_source(a);
    desc.key_cache.data = next_target(a);
    desc.value_cache.data = next_target(a);
    a->status = rapt_append(&desc, &options, NULL);
}

static void copy_run(void *context) {
    struct append *a = context;
    const size_t half = (a->read_bytes + a->written_bytes) / 2;
    for (int side = 0; side < 2; side++)
        memcpy(next_target(a), next_source(a), half);
}

/* Scales [page or batch][head][token]. */
static void add_scales(struct append *a, rapt_tensor *cache, int side, int64_t dim) {
    const bool by_row = cache->dtype == RAPT_I8;
    const int64_t rows = a->desc.length * a->desc.kv_heads;
    if (!by_row && cache->dtype != RAPT_F8_E4M3 && cache->dtype != RAPT_F8_E5M2)
        return;
    if (!a->scales)
        a->scales = malloc((size_t)rows * 2 * sizeof *a->scales);
    for (int64_t i = 0; a->scales && i < rows; i++)
        a->scales[side * rows + i] = 0.01f;
    cache->scale_dtype = RAPT_F32;
    cache->scales = a->scales + side * rows;
    if (!by_row)
        return;
    cache->scale_token_stride_bytes = 4;
    cache->scale_head_stride_bytes = cache->head_stride_bytes / dim * 4;
    cache->scale_batch_stride_bytes = (cache->batch_stride_bytes + cache->page_stride_bytes) / dim * 4;
    a->desc.features |= side ? RAPT_COMPUTE_VALUE_SCALES : RAPT_COMPUTE_KEY_SCALES;
}

/* Every page once, in an order that defeats prefetchers. */
static void shuffle_slots(struct append *a, int64_t tokens, int64_t page_tokens) {
    const int64_t pages = tokens / page_tokens;
    a->slots = malloc((size_t)tokens * sizeof *a->slots);
    for (int64_t t = 0; a->slots && t < tokens; t++)
        a->slots[t] = t / page_tokens * 2654435761 % pages * page_tokens + t % page_tokens;
    a->desc.slots = rapt_int64_list(a->slots, tokens);
    a->desc.pages.page_tokens = page_tokens;
    a->desc.pages.pages = pages;
}

static bool describe(struct append *a, const struct row *row) {
    char name[8] = "";
    long long dim = 0, heads = 0, tokens = 0, page = 0;
    const char *paged = strstr(row->name, "/paged");
    int32_t dtype = 0;
    if (sscanf(row->name, "append/%7[^/]/d%lld/h%lld/n%lld", name, &dim, &heads, &tokens) != 4)
        return false;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(name, dtypes[i].name) == 0)
            dtype = dtypes[i].dtype;
    a->desc = (rapt_append_desc)RAPT_APPEND_DESC_INIT;
    rapt_append_desc *d = &a->desc;
    d->batch = 1, d->kv_heads = heads, d->length = tokens, d->head_dim = dim, d->isa = (int32_t)row->isa;
    d->key = d->value = rapt_input_bshd(NULL, 1, tokens, heads, dim);
    if (paged && sscanf(paged, "/paged%lld", &page) == 1) {
        shuffle_slots(a, tokens, page);
        d->key_cache = rapt_tensor_bhsd(NULL, dtype, tokens / page, heads, page, dim);
        d->key_cache.page_stride_bytes = d->key_cache.batch_stride_bytes;
        d->key_cache.batch_stride_bytes = 0;
    } else {
        d->cache_length = tokens;
        d->positions = rapt_int64_list(&a->position, 1);
        d->key_cache = rapt_tensor_bhsd(NULL, dtype, 1, heads, tokens, dim);
    }
    d->value_cache = d->key_cache;
    add_scales(a, &d->key_cache, 0, dim);
    add_scales(a, &d->value_cache, 1, dim);
    if (strstr(row->name, "/rotary")) {
        d->rotary.pairing = RAPT_ROTARY_HALVES;
        d->rotary.base = 10000;
        d->rotary_positions = d->slots; /* any positions will do */
    }
    a->read_bytes = (size_t)(tokens * heads * dim) * sizeof(float);
    a->written_bytes = (size_t)(tokens * heads * rapt_row_bytes(dtype, dim));
    return true;
}

void row_append(struct bench_state *state, const struct row *row, const struct row_settings *settings,
                struct row_run *run) {
    struct append a = {.arena = settings->arena, .pool = buffer_new(POOL_BYTES), .threads = row->threads};
    struct contender *contenders[] = {&run->subject, &run->rival};
    if (!describe(&a, row)) {
        bench_fail(state, "no name of an append");
    } else {
        const double bytes = 2 * (double)(a.read_bytes + a.written_bytes);
        run->subject = (struct contender){.run = append_run, .context = &a, .calls_per_round = 1};
        run->rival = (struct contender){.run = copy_run, .context = &a, .calls_per_round = 1};
        measure(contenders, 2, settings->seconds, settings->min_rounds);
        report_time(state, &run->subject);
        bench_counter(state, "gbps", bytes / run->subject.best_seconds * 1e-9);
        bench_counter(state, "copy_gbps", bytes / run->rival.best_seconds * 1e-9);
        bench_counter(state, "of_copy", run->rival.best_seconds / run->subject.best_seconds);
        bench_counter(state, "of_copy_median", run->rival.best_seconds / run->subject.median_seconds);
        bench_counter(state, "threads", row->threads);
        report_failure(state, a.status, RAPT_OK);
    }
    free(a.slots);
    free(a.scales);
    buffer_free(a.pool);
}
