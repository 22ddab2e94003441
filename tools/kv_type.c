/* SPDX-License-Identifier: MIT */
#include "kv_type.h"

#include <string.h>

#include "format.h"
#include "pages.h"
#include "rapt/cache.h"
#include "suggest.h"
#include "tool.h"

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
    tool_die("--%s: '%s' is none of%s%s", option, given, names, suggest_text(&suggestion, "", hint));
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

/* For float8 and int8 with a scale for each row. */
static rapt_tensor room_for(const rapt_attention_desc *desc, const char *option, const char *given, int64_t dim) {
    const struct named_type *type = type_named(option, given);
    if (dim % type->elements != 0)
        tool_die("--%s %s: a head has %lld elements, which is no multiple of %d", option, given, (long long)dim,
                 type->elements);
    const int64_t rows = tool_product(tool_product(desc->batch, desc->kv_heads, option), desc->kv_length, option);
    void *data = tool_allocate(rows, (size_t)rapt_row_bytes(type->dtype, dim), option);
    rapt_tensor room = rapt_tensor_bhsd(data, type->dtype, desc->batch, desc->kv_heads, desc->kv_length, dim);
    if (!(type->uses & RAPT_MAY_SCALE)) return room;
    room.scale_dtype = RAPT_F32;
    room.scales = tool_allocate(rows, sizeof(float), option);
    room.scale_token_stride_bytes = sizeof(float);
    room.scale_head_stride_bytes = desc->kv_length * room.scale_token_stride_bytes;
    room.scale_batch_stride_bytes = desc->kv_heads * room.scale_head_stride_bytes;
    return room;
}

/* The call with each page as a sequence of its own. */
static rapt_attention_desc by_pages(const rapt_attention_desc *paged) {
    rapt_attention_desc desc = *paged;
    desc.batch = paged->key_pages.pages;
    desc.kv_length = paged->key_pages.page_tokens;
    desc.key = pages_as_batches(paged->key);
    desc.value = pages_as_batches(paged->value);
    desc.key_pages = desc.value_pages = (rapt_page_table){0};
    return desc;
}

static rapt_attention_desc stored_in_pages(const rapt_attention_desc *paged, const struct attend_options *options) {
    const rapt_attention_desc desc = by_pages(paged), stored = kv_type_stored(&desc, options);
    rapt_attention_desc result = *paged;
    result.key = pages_of_batches(stored.key);
    result.value = pages_of_batches(stored.value);
    return result;
}

rapt_attention_desc kv_type_stored(const rapt_attention_desc *desc, const struct attend_options *options) {
    if (desc->key_pages.kind) return stored_in_pages(desc, options);
    const char *key_type = options->key_type ? options->key_type : options->kv_type;
    const char *value_type = options->value_type ? options->value_type : options->kv_type;
    rapt_attention_desc stored = *desc;
    rapt_append_desc append = RAPT_APPEND_DESC_INIT;
    rapt_message message;
    if (!key_type && !value_type) return stored;
    append.isa = desc->isa;
    append.batch = desc->batch;
    append.kv_heads = desc->kv_heads;
    append.length = append.cache_length = desc->kv_length;
    append.head_dim = desc->head_dim;
    append.value_dim = desc->value_dim;
    if (key_type) {
        append.key = desc->key;
        append.key_cache = stored.key =
            room_for(desc, options->key_type ? "key-type" : "kv-type", key_type, desc->head_dim);
        if (stored.key.scale_dtype) append.features |= RAPT_COMPUTE_KEY_SCALES;
    }
    if (value_type) {
        append.value = desc->value;
        append.value_cache = stored.value =
            room_for(desc, options->value_type ? "value-type" : "kv-type", value_type, desc->value_dim);
        if (stored.value.scale_dtype) append.features |= RAPT_COMPUTE_VALUE_SCALES;
    }
    int64_t *positions = tool_allocate(desc->batch, sizeof *positions, "positions"); /* 0: from the first row on */
    append.positions = rapt_int64_list(positions, desc->batch);
    rapt_status status = rapt_append(&append, NULL, &message);
    if (status != RAPT_OK) tool_die("%s: %s", rapt_status_text(status), message.text);
    return stored;
}
