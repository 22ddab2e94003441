/* SPDX-License-Identifier: MIT */
#include "workload.h"

#include <string.h>

rapt_dtype workload_query_dtype(const struct workload_shape *shape) {
    return shape->numerics == RAPT_NUMERICS_ORDER_2 ? shape->kv_dtype : RAPT_F32;
}

static rapt_tensor tensor(const struct workload_shape *shape, const void *data, int64_t heads, int64_t tokens,
                          int64_t dim) {
    const int64_t batch = shape->batch;
    const rapt_dtype dtype = workload_query_dtype(shape);
    return shape->layout == LAYOUT_BSHD ? rapt_tensor_bshd(data, dtype, batch, tokens, heads, dim)
                                        : rapt_tensor_bhsd(data, dtype, batch, heads, tokens, dim);
}

static rapt_tensor kv_tensor(const struct workload_shape *shape, const void *data, int64_t dim) {
    const int64_t batch = shape->batch, heads = shape->kv_heads, tokens = shape->kv_length;
    if (shape->layout != LAYOUT_BSHD && !shape->kv_token_bytes)
        return rapt_tensor_bhsd(data, shape->kv_dtype, batch, heads, tokens, dim);
    rapt_tensor of_layout = rapt_tensor_bshd(data, shape->kv_dtype, batch, tokens, heads, dim);
    if (shape->kv_token_bytes) {
        of_layout.token_stride_bytes = shape->kv_token_bytes;
        of_layout.batch_stride_bytes = tokens * shape->kv_token_bytes;
        of_layout.extent_bytes = batch * of_layout.batch_stride_bytes;
    }
    return of_layout;
}

/* Heads and tokens of a page in the order that they had. */
static rapt_tensor in_pages(rapt_tensor tensor, const rapt_attention_desc *desc, const rapt_page_table *table,
                            int64_t dim) {
    const int64_t heads = desc->kv_heads, tokens = table->page_tokens;
    return tensor.head_stride_bytes < tensor.token_stride_bytes
               ? rapt_tensor_bshd(tensor.data, tensor.dtype, table->pages, tokens, heads, dim)
               : rapt_tensor_bhsd(tensor.data, tensor.dtype, table->pages, heads, tokens, dim);
}

int32_t *workload_page(rapt_attention_desc *desc, int64_t page_tokens, int64_t tokens) {
    const int64_t row = (tokens + page_tokens - 1) / page_tokens, pages = desc->batch * row;
    int32_t *const entries = buffer_new((size_t)pages * sizeof *entries);
    uint32_t state = 1;
    for (int64_t i = 0; i < pages; i++) {
        state = state * 1664525u + 1013904223u;
        const int64_t other = (int64_t)((uint64_t)state * (uint64_t)(i + 1) >> 32);
        entries[i] = entries[other];
        entries[other] = (int32_t)i;
    }
    rapt_page_table *const table = &desc->key_pages;
    *table = (rapt_page_table){.kind = RAPT_PAGES_DENSE,
                               .page_tokens = page_tokens,
                               .pages = pages,
                               .entries = rapt_int32_list(entries, row),
                               .batch_stride_bytes = row * (int64_t)sizeof *entries};
    desc->value_pages = *table;
    desc->key = in_pages(desc->key, desc, table, desc->head_dim);
    const bool is_view = desc->value.data == desc->key.data;
    desc->value = in_pages(desc->value, desc, table, is_view || !desc->value_dim ? desc->head_dim : desc->value_dim);
    desc->key.page_stride_bytes = desc->key.batch_stride_bytes;
    desc->value.page_stride_bytes = desc->value.batch_stride_bytes;
    return entries;
}

/* Scores of [query, key], the same for all heads and sequences. */
static rapt_tensor score_tensor(const struct workload_shape *shape, void *data, rapt_dtype dtype) {
    int64_t element_bytes = dtype == RAPT_F32 ? 4 : 1;
    return (rapt_tensor){
        .data = data, .dtype = dtype, .token_stride_bytes = shape->kv_length * element_bytes};
}

/* Sets so many of the bytes, at random. */
static void select_some(unsigned char *bytes, int64_t count, int64_t selected, uint32_t seed) {
    memset(bytes, 0, (size_t)count);
    for (uint32_t state = seed; selected > 0;) {
        state = state * 1664525u + 1013904223u;
        const int64_t at = (int64_t)((uint64_t)state * (uint64_t)count >> 32);
        selected -= !bytes[at];
        bytes[at] = 1;
    }
}

static void fill_blocks(struct workload *workload) {
    const struct workload_shape *shape = &workload->shape;
    const int64_t lists = (shape->query_length + shape->block_keys - 1) / shape->block_keys;
    const int64_t blocks = shape->kv_length / shape->block_keys;
    unsigned char *listed = buffer_new((size_t)blocks);
    workload->offsets = buffer_new((size_t)(lists + 1) * sizeof *workload->offsets);
    workload->entries = buffer_new((size_t)(lists * shape->selected) * sizeof *workload->entries);
    int32_t count = 0;
    for (int64_t list = 0; list < lists; list++) {
        select_some(listed, blocks, shape->selected, (uint32_t)list);
        workload->offsets[list] = count;
        for (int64_t block = 0; block < blocks; block++)
            if (listed[block])
                workload->entries[count++] = (int32_t)block;
    }
    workload->offsets[lists] = count;
    buffer_free(listed);
    workload->desc.key_blocks = (rapt_block_list){.query_tokens = shape->block_keys,
                                                  .key_tokens = shape->block_keys,
                                                  .offsets = rapt_int32_list(workload->offsets, lists + 1),
                                                  .entries = rapt_int32_list(workload->entries, count)};
}

static void fill_mask(struct workload *workload, const float *random) {
    const int64_t queries = workload->shape.query_length, keys = workload->shape.kv_length;
    workload->mask = buffer_new((size_t)(queries * keys));
    for (int64_t i = 0; i < queries; i++) {
        unsigned char *row = workload->mask + i * keys;
        switch (workload->shape.feature) {
        case FEATURE_MASK_CAUSAL:
            memset(row, 1, (size_t)(i + 1));
            break;
        case FEATURE_MASK_RANDOM:
            for (int64_t j = 0; j < keys; j++)
                row[j] = random[i * keys + j] > 0;
            break;
        case FEATURE_TOP_KEYS:
            select_some(row, keys, workload->shape.selected, (uint32_t)i);
            break;
        default:
            memset(row, 1, (size_t)keys);
        }
    }
}

static void add_feature(struct workload *workload, const struct arena *arena) {
    rapt_attention_desc *desc = &workload->desc;
    /* Normal numbers far beyond what this shape reads as K and V. */
    float *random = (float *)(void *)(arena->base + arena->bytes / 2);
    switch (workload->shape.feature) {
    case FEATURE_NONE:
        break;
    case FEATURE_CAUSAL:
        desc->features |= RAPT_CAUSAL | (workload->shape.window ? RAPT_WINDOW : 0);
        desc->window_left = workload->shape.window ? workload->shape.window - 1 : 0;
        break;
    case FEATURE_ALIBI:
        desc->features |= RAPT_ALIBI_STANDARD;
        break;
    case FEATURE_SOFTCAP:
        desc->softcap = 30;
        break;
    case FEATURE_MASK_ONES:
    case FEATURE_MASK_RANDOM:
    case FEATURE_MASK_CAUSAL:
    case FEATURE_TOP_KEYS:
        fill_mask(workload, random);
        desc->mask = score_tensor(&workload->shape, workload->mask, RAPT_BOOL8);
        break;
    case FEATURE_BIAS:
        desc->bias = score_tensor(&workload->shape, random, RAPT_F32);
        break;
    case FEATURE_SINKS:
        desc->sinks = random;
        break;
    case FEATURE_KEY_BLOCKS:
        fill_blocks(workload);
        break;
    }
}

void workload_scale(rapt_attention_desc *desc, rapt_dtype kv_dtype) {
    static float one = 1;
    if (rapt_row_bytes(kv_dtype, 32) >= 2 * 32)
        return;
    desc->features |= RAPT_SCALE;
    desc->scale = 1.0f / 1024;
    if (kv_dtype == RAPT_I8) {
        desc->key.scale_dtype = desc->value.scale_dtype = RAPT_F32;
        desc->key.scales = desc->value.scales = &one;
    }
}

void workload_describe(struct workload *workload, rapt_isa isa, const struct arena *arena) {
    const struct workload_shape *shape = &workload->shape;
    rapt_attention_desc *desc = &workload->desc;
    *desc = (rapt_attention_desc)RAPT_ATTENTION_DESC_INIT;
    desc->isa = isa;
    desc->numerics = shape->numerics;
    desc->batch = shape->batch;
    desc->query_heads = shape->query_heads;
    desc->kv_heads = shape->kv_heads;
    desc->query_length = shape->query_length;
    desc->kv_length = shape->kv_length;
    desc->head_dim = shape->head_dim;
    desc->query = tensor(shape, workload->query, shape->query_heads, shape->query_length, shape->head_dim);
    desc->out = tensor(shape, workload->out, shape->query_heads, shape->query_length, shape->value_dim);
    desc->value_dim = shape->value_dim;
    desc->key = kv_tensor(shape, workload->key, shape->head_dim);
    desc->value = kv_tensor(shape, workload->value, shape->is_latent ? shape->head_dim : shape->value_dim);
    if (shape->ragged) {
        desc->query_lengths = desc->kv_lengths =
            (rapt_index_list){.data = workload->lengths, .index_bytes = 4};
        desc->query_origin = RAPT_ORIGIN_TOP_LEFT;
    }
    if (shape->page_tokens)
        workload->pages = workload_page(desc, shape->page_tokens, shape->kv_length);
    workload_scale(desc, shape->kv_dtype);
    add_feature(workload, arena);
}

bool workload_accepts(rapt_dtype kv_dtype) {
    static float query[32], out[32], stored[32];
    rapt_plan plan;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = desc.kv_length = 1;
    desc.head_dim = 32;
    desc.query = (rapt_tensor){.data = query, .dtype = RAPT_F32};
    desc.out = (rapt_tensor){.data = out, .dtype = RAPT_F32};
    desc.key = desc.value = (rapt_tensor){.data = stored, .dtype = kv_dtype};
    workload_scale(&desc, kv_dtype);
    return rapt_plan_init(&plan, &desc, NULL) == RAPT_OK;
}
