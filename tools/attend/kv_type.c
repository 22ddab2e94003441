/* SPDX-License-Identifier: MIT */
#include "attend/kv_type.h"

#include <string.h>

#include "attend/pages.h"
#include "common/suggest.h"
#include "common/tool.h"
#include "format.h"
#include "rapt/cache.h"

struct named_type {
    const char *name;
    int32_t dtype;
    int uses, elements;
};

static const struct named_type types[] = {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) {#name, RAPT_##NAME, uses, elements},
#include "format.def"
#undef RAPT_FORMAT
};

enum { TYPES = sizeof types / sizeof types[0] };

static const struct named_type *type_named(const char *option, const char *given) {
    struct suggestion suggestion = {.given = given};
    char hint[SUGGEST_TEXT], names[256] = "";
    for (int i = 0; i < TYPES; i++) {
        if (!(types[i].uses & RAPT_USE_KEY_VALUE)) continue;
        if (strcmp(given, types[i].name) == 0) return &types[i];
        suggest_consider(&suggestion, types[i].name);
        strcat(strcat(names, " "), types[i].name);
    }
    tool_die("--%s: '%s' is not one of%s%s", option, given, names, suggest_text(&suggestion, "", hint));
}

void kv_type_check(const char *option, const char *given) {
    if (given) type_named(option, given);
}

const char *kv_type_text(int32_t dtype) {
    for (int i = 0; i < TYPES; i++) {
        if (types[i].dtype == dtype) return types[i].name;
    }
    return "";
}

int64_t kv_type_row_bytes(const rapt_tensor *tensor, int64_t dim) {
    return rapt_row_bytes(tensor->dtype, dim) + (tensor->scale_dtype ? (int64_t)sizeof(float) : 0);
}

/* Another type for a tensor [batch, heads, tokens, dim], and the option that names it. */
struct conversion {
    const char *option, *type;
    int64_t batch, heads, tokens, dim;
};

/* float8 and int8 get a scale per row. */
static rapt_tensor room_for(const struct conversion *to) {
    const struct named_type *type = type_named(to->option, to->type);
    if (to->dim % type->elements != 0)
        tool_die("--%s %s: a head has %lld elements, which is not a multiple of %d", to->option, to->type,
                 (long long)to->dim, type->elements);
    const int64_t rows = tool_product(tool_product(to->batch, to->heads, to->option), to->tokens, to->option);
    void *data = tool_allocate(rows, (size_t)rapt_row_bytes(type->dtype, to->dim), to->option);
    rapt_tensor room = rapt_tensor_bhsd(data, type->dtype, to->batch, to->heads, to->tokens, to->dim);
    if (!(type->uses & RAPT_MAY_SCALE)) return room;
    room.scale_dtype = RAPT_F32;
    room.scales = tool_allocate(rows, sizeof(float), to->option);
    room.scale_token_stride_bytes = sizeof(float);
    room.scale_head_stride_bytes = to->tokens * room.scale_token_stride_bytes;
    room.scale_batch_stride_bytes = to->heads * room.scale_head_stride_bytes;
    return room;
}

/* Appends to an empty cache, which rounds; queries pass as keys of as many heads. */
static rapt_tensor converted(const rapt_tensor *from, const struct conversion *to, int32_t isa) {
    rapt_append_desc append = RAPT_APPEND_DESC_INIT;
    rapt_message message;
    append.isa = isa;
    append.batch = to->batch;
    append.kv_heads = to->heads;
    append.length = append.cache_length = to->tokens;
    append.head_dim = append.value_dim = to->dim;
    append.key = *from;
    append.key_cache = room_for(to);
    if (append.key_cache.scale_dtype) append.features |= RAPT_COMPUTE_KEY_SCALES;
    int64_t *positions = tool_allocate(to->batch, sizeof *positions, "positions"); /* 0: from the first row on */
    append.positions = rapt_int64_list(positions, to->batch);
    rapt_status status = rapt_append(&append, NULL, &message);
    if (status != RAPT_OK) tool_die("%s: %s", rapt_status_text(status), message.text);
    return append.key_cache;
}

/* The call with each page as a sequence. */
static rapt_attention_desc by_pages(const rapt_attention_desc *paged) {
    rapt_attention_desc desc = *paged;
    desc.batch = paged->key_pages.pages;
    desc.kv_length = paged->key_pages.page_tokens;
    desc.key = pages_as_batches(paged->key);
    desc.value = pages_as_batches(paged->value);
    desc.key_pages = desc.value_pages = (rapt_page_table){0};
    return desc;
}

static rapt_attention_desc stored_keys_and_values(const rapt_attention_desc *desc,
                                                  const struct attend_options *options) {
    struct conversion to = {options->key_type ? "key-type" : "kv-type",
                            options->key_type ? options->key_type : options->kv_type,
                            desc->batch, desc->kv_heads, desc->kv_length, desc->head_dim};
    rapt_attention_desc stored = *desc;
    if (to.type) stored.key = converted(&desc->key, &to, desc->isa);
    to.option = options->value_type ? "value-type" : "kv-type";
    to.type = options->value_type ? options->value_type : options->kv_type;
    to.dim = desc->value_dim;
    if (to.type) stored.value = converted(&desc->value, &to, desc->isa);
    return stored;
}

static rapt_attention_desc stored_in_pages(const rapt_attention_desc *paged, const struct attend_options *options) {
    const rapt_attention_desc desc = by_pages(paged), stored = stored_keys_and_values(&desc, options);
    rapt_attention_desc result = *paged;
    result.key = pages_of_batches(stored.key);
    result.value = pages_of_batches(stored.value);
    return result;
}

rapt_attention_desc kv_type_stored(const rapt_attention_desc *desc, const struct attend_options *options) {
    rapt_attention_desc stored =
        desc->key_pages.kind ? stored_in_pages(desc, options) : stored_keys_and_values(desc, options);
    const struct conversion to = {"query-type", options->query_type, desc->batch, desc->query_heads,
                                  desc->query_length, desc->head_dim};
    if (to.type) stored.query = converted(&desc->query, &to, desc->isa);
    return stored;
}
