/* SPDX-License-Identifier: MIT
 *
 * The name of a row defines it: "prefill/f32/d128/s2048/causal" is parsed, so that no name is wrong. */
#define _DEFAULT_SOURCE
#include "row_table.h"

#include "rapt/matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROTARY_DIMS = 64 }; /* of latent attention: the last ones of a key, which are no values */
enum { DECODE_KV_HEADS = 8, RAGGED_KV_HEADS = 2, LAYOUT_QUERY_HEADS = 8, RAGGED_LENGTH = 2048, FEW_ROWS = 16 };

struct name_parts {
    int64_t head_dim, length, kv_length, query_length, group, kv_heads, batch, window, top_keys, selected, block_keys;
    int64_t latent_dim, page_tokens;
    enum workload_feature feature;
    const char *layout;
    rapt_dtype kv_dtype;
    int64_t numerics;
};

static const struct {
    const char *word;
    enum workload_feature feature;
} features[] = {
    {"full", FEATURE_NONE},
    {"causal", FEATURE_CAUSAL},
    {"alibi", FEATURE_ALIBI},
    {"softcap", FEATURE_SOFTCAP},
    {"boolmask_ones", FEATURE_MASK_ONES},
    {"boolmask_random", FEATURE_MASK_RANDOM},
    {"boolmask_causal", FEATURE_MASK_CAUSAL},
    {"bias", FEATURE_BIAS},
    {"sinks", FEATURE_SINKS},
};

static const struct {
    const char *word;
    rapt_dtype dtype;
} types[] = {{"f32", RAPT_F32}, {"f16", RAPT_F16}, {"bf16", RAPT_BF16}, {"q8_0", RAPT_Q8_0}, {"q4_0", RAPT_Q4_0},
             {"q4_1", RAPT_Q4_1}, {"iq4_nl", RAPT_IQ4_NL}, {"float8_e4m3", RAPT_F8_E4M3}, {"float8_e5m2", RAPT_F8_E5M2},
             {"int8", RAPT_I8}};

static const struct {
    const char *letters;
    size_t offset;
} numbers[] = {
    {"d", offsetof(struct name_parts, head_dim)},   {"s", offsetof(struct name_parts, length)},
    {"kv", offsetof(struct name_parts, kv_length)}, {"q", offsetof(struct name_parts, query_length)},
    {"g", offsetof(struct name_parts, group)},      {"h", offsetof(struct name_parts, kv_heads)},
    {"t", offsetof(struct name_parts, length)},
    {"n", offsetof(struct name_parts, batch)},
    {"mla", offsetof(struct name_parts, latent_dim)},
    {"window", offsetof(struct name_parts, window)},
    {"topk", offsetof(struct name_parts, top_keys)},
    {"select", offsetof(struct name_parts, selected)},
    {"blocks", offsetof(struct name_parts, block_keys)},
    {"paged", offsetof(struct name_parts, page_tokens)},
    {"order", offsetof(struct name_parts, numerics)},
};

static void take_part(struct name_parts *parts, const char *part) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(part, types[i].word) != 0)
            continue;
        parts->kv_dtype = types[i].dtype;
        return; /* q8_0 is no number of queries */
    }
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        if (strcmp(part, features[i].word) == 0)
            parts->feature = features[i].feature;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        size_t letters = strlen(numbers[i].letters);
        if (strncmp(part, numbers[i].letters, letters) == 0 && part[letters] >= '0' && part[letters] <= '9')
            *(int64_t *)(void *)((char *)parts + numbers[i].offset) = atoll(part + letters);
    }
    if (strncmp(part, "layout:", 7) == 0)
        parts->layout = part + 7;
}

/* Heads for a run of some milliseconds, and enough tasks for two threads. */
static int64_t prefill_heads(int64_t length) {
    return length <= 128 ? 32 : length <= 512 ? 8 : length <= 2048 ? 2 : 1;
}

static void set_shape(struct workload_shape *shape, const struct name_parts *parts) {
    int64_t layout_heads = parts->layout ? LAYOUT_QUERY_HEADS / parts->group : 0;
    int64_t kv_heads = parts->kv_heads ? parts->kv_heads : layout_heads;
    *shape = (struct workload_shape){
        .batch = parts->batch,
        .query_heads = kv_heads * parts->group,
        .kv_heads = kv_heads,
        .query_length = parts->length ? parts->length : parts->query_length,
        .kv_length = parts->length ? parts->length : parts->kv_length,
        .head_dim = parts->latent_dim ? parts->latent_dim : parts->head_dim,
        .value_dim = parts->latent_dim ? parts->latent_dim - ROTARY_DIMS : parts->head_dim,
        .is_latent = parts->latent_dim > 0,
        .kv_dtype = parts->kv_dtype,
        .numerics = (int32_t)parts->numerics,
        .feature = parts->window       ? FEATURE_CAUSAL
                   : parts->top_keys   ? FEATURE_TOP_KEYS
                   : parts->block_keys ? FEATURE_KEY_BLOCKS
                                       : parts->feature,
        .window = parts->window,
        .selected = parts->top_keys ? parts->top_keys : parts->selected,
        .block_keys = parts->block_keys,
        .page_tokens = parts->page_tokens,
    };
    if (parts->layout && strcmp(parts->layout, "bshd") == 0)
        shape->layout = LAYOUT_BSHD;
    if (parts->layout && strncmp(parts->layout, "kv", 2) == 0)
        shape->kv_token_bytes = atoll(parts->layout + 2) * 1024;
}

/* matmul/f32/m512k768n768, and /in_out where weights are [inner][columns]. */
static void product_from_name(struct row *row, const char *name) {
    long long rows = 0, inner = 0, columns = 0;
    sscanf(name, "matmul/f32/m%lldk%lldn%lld", &rows, &inner, &columns);
    row->product = (struct product_shape){rows, inner, columns,
                                          strstr(name, "/in_out") ? RAPT_WEIGHT_IN_OUT : RAPT_WEIGHT_OUT_IN};
    row->kind = rows <= FEW_ROWS ? ROW_MATMUL_FROM_MEMORY : ROW_MATMUL;
}

/* mixed/f32/d128/prefill1000x1/decode4096x31: one sequence of 1000 queries and keys, 31 of one query and 4096 keys.
 * decode16to8192x255: of many lengths. */
static void mixed_from_name(struct row *row, const char *name) {
    struct mixed_shape *mixed = &row->mixed;
    const char *prefill = strstr(name, "/prefill"), *decode = strstr(name, "/decode");
    long long length = 0, longest = 0, count = 0;
    if (prefill && sscanf(prefill, "/prefill%lldx%lld", &length, &count) == 2)
        mixed->prefill_length = length, mixed->prefills = count;
    if (decode && sscanf(decode, "/decode%lldx%lld", &length, &count) == 2)
        mixed->shortest = mixed->longest = length, mixed->decodes = count;
    else if (decode && sscanf(decode, "/decode%lldto%lldx%lld", &length, &longest, &count) == 3)
        mixed->shortest = length, mixed->longest = longest, mixed->decodes = count;
    row->kind = ROW_MIXED;
}

void row_from_name(struct row *row, const char *name) {
    if (strncmp(name, "matmul/", 7) == 0) {
        product_from_name(row, name);
        return;
    }
    if (strncmp(name, "append/", 7) == 0) {
        row->kind = ROW_APPEND;
        return;
    }
    struct name_parts parts = {.group = 1, .batch = 1, .query_length = 1, .kv_dtype = RAPT_F32};
    char text[sizeof row->name], *at = text;
    snprintf(text, sizeof text, "%s", name);
    const char *kind = strsep(&at, "/");
    take_part(&parts, kind); /* paged16 */
    for (const char *part; (part = strsep(&at, "/"));)
        take_part(&parts, part);
    if (strcmp(kind, "ragged") == 0) {
        parts.batch = WORKLOAD_MAX_RAGGED;
        parts.length = RAGGED_LENGTH;
        parts.kv_heads = RAGGED_KV_HEADS;
    }
    if (!parts.kv_heads && !parts.layout)
        parts.kv_heads = strcmp(kind, "many") == 0 || strcmp(kind, "tiny") == 0 ? 1
                         : parts.length                                         ? prefill_heads(parts.length)
                                                                                : DECODE_KV_HEADS;
    set_shape(&row->shape, &parts);
    row->shape.ragged = strcmp(kind, "ragged") == 0;
    row->kind = strncmp(kind, "peer", 4) == 0 ? ROW_PEER
                : strcmp(kind, "tiny") == 0   ? ROW_TINY
                : strcmp(kind, "layer") == 0  ? ROW_LAYER
                : parts.length                ? ROW_PREFILL
                                              : ROW_FROM_MEMORY;
    if (strcmp(kind, "mixed") == 0)
        mixed_from_name(row, name);
}
