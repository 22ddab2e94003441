/* SPDX-License-Identifier: MIT
 * Lists: one integer per sequence, one float per query head. */
#include "checked.h"
#include "validate/parts.h"

/* RAPT_OK: the entries do not wrap around the address space. */
rapt_status rapt_check_list_bytes(struct rapt_validation *v, const char *name, const void *data, int64_t count,
                                  int64_t entry_bytes, int64_t stride_bytes) {
    int64_t bytes = 0;
    if ((uintptr_t)data % (uintptr_t)entry_bytes)
        return rapt_refuse(v->message, RAPT_MISALIGNED_POINTER, "%s = %p is not aligned to %lld bytes", name,
                           data, (long long)entry_bytes);
    if (count > 0 && (!rapt_mul_fits(count - 1, stride_bytes, &bytes) || !rapt_add_fits(bytes, entry_bytes, &bytes) ||
                      UINTPTR_MAX - (uintptr_t)data < (uint64_t)bytes))
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE, "%s = %p: %lld entries leave the address space",
                           name, data, (long long)count);
    const bool gaps = stride_bytes != entry_bytes && count > 1;
    v->footprints[v->footprint_count++] = (struct rapt_footprint){.name = name,
                                                                  .begin = (uintptr_t)data,
                                                                  .bytes = bytes,
                                                                  .row_bytes = gaps ? entry_bytes : bytes,
                                                                  .size = {1, 1, gaps ? count : 1},
                                                                  .stride = {0, 0, gaps ? stride_bytes : 0},
                                                                  .placed = true};
    return RAPT_OK;
}

/* Entries that are read, and how messages count them: "batch = 3 takes one more". */
struct entries {
    int64_t read;
    const char *before, *after;
    int64_t said;
};

static rapt_status check_fields(struct rapt_validation *v, const char *name, rapt_index_list list,
                                struct entries entries) {
    if (list.reserved_zero)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.reserved_zero = %d is not 0", name,
                           (int)list.reserved_zero);
    if (!list.data && entries.said && (list.index_bytes || list.count || list.stride_bytes))
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD,
                           "%s.data is NULL, but index_bytes = %d, count or stride_bytes is set", name,
                           (int)list.index_bytes);
    if (list.data && list.index_bytes != 4 && list.index_bytes != 8)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s.index_bytes = %d is neither 4 nor 8", name,
                           (int)list.index_bytes);
    if (list.count < 0 || (list.count && list.count < entries.read))
        return rapt_refuse(v->message, RAPT_OUT_OF_EXTENT, "%s.count = %lld, but %s%lld%s", name,
                           (long long)list.count, entries.before, (long long)entries.said, entries.after);
    if (list.data && (list.stride_bytes < list.index_bytes || list.stride_bytes % list.index_bytes))
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE,
                           "%s.stride_bytes = %lld is not a positive multiple of index_bytes = %d", name,
                           (long long)list.stride_bytes, (int)list.index_bytes);
    return RAPT_OK;
}

/* A list of one entry per sequence, or of one more. */
static rapt_status check_list_fields(struct rapt_validation *v, const char *name, rapt_index_list list, int64_t count) {
    const int64_t batch = v->desc->batch;
    const struct entries entries = {count, "batch = ", count > batch ? " takes one more" : "", batch};
    const rapt_status status = check_fields(v, name, list, entries);
    if (status != RAPT_OK || !list.data)
        return status;
    return rapt_check_list_bytes(v, name, list.data, count, list.index_bytes, list.stride_bytes);
}

rapt_status rapt_repeat_list(struct rapt_validation *v, const char *name, int64_t batch, int64_t stride_bytes,
                             int64_t index_bytes) {
    struct rapt_footprint *f = &v->footprints[v->footprint_count - 1];
    int64_t reach;
    if (batch <= 1)
        return RAPT_OK;
    if (stride_bytes < 0 || stride_bytes % index_bytes)
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE,
                           "%s = %lld is negative or not a multiple of index_bytes = %lld", name,
                           (long long)stride_bytes, (long long)index_bytes);
    if (!rapt_mul_fits(batch - 1, stride_bytes, &reach) || !rapt_add_fits(f->bytes, reach, &f->bytes) ||
        UINTPTR_MAX - f->begin < (uint64_t)f->bytes)
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE, "%s: %lld rows of %lld bytes leave the address space", name,
                           (long long)batch, (long long)stride_bytes);
    f->size[0] = batch;
    f->stride[0] = stride_bytes;
    return RAPT_OK;
}

static rapt_status check_index_list(struct rapt_validation *v, const char *name, rapt_index_list list,
                                    int64_t least, int64_t most) {
    const int64_t batch = v->desc->batch;
    if (!list.data && !list.index_bytes && !list.reserved_zero && !list.count && !list.stride_bytes)
        return RAPT_OK;
    const rapt_status status = check_list_fields(v, name, list, batch);
    if (status != RAPT_OK || !list.data || v->memory == RAPT_MEMORY_BINDING)
        return status;
    for (int64_t i = 0; i < batch; i++) {
        const int64_t index = rapt_index_at(list, i);
        if (index < least || index > most)
            return rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s[%lld] = %lld is outside %lld ... %lld",
                               name, (long long)i, (long long)index, (long long)least, (long long)most);
    }
    return RAPT_OK;
}

/* Where packed sequences begin and end. */
struct offsets_rule {
    const char *name, *length_name, *tokens_name;
    rapt_index_list list;
    int64_t length, tokens; /* of a sequence at most, of all sequences */
};

static rapt_status check_offsets(struct rapt_validation *v, const struct offsets_rule *rule) {
    const rapt_status status = check_list_fields(v, rule->name, rule->list, v->desc->batch + 1);
    if (status != RAPT_OK || !rule->list.data || v->memory == RAPT_MEMORY_BINDING)
        return status;
    for (int64_t i = 0, before = 0; i <= v->desc->batch; i++) {
        const int64_t offset = rapt_index_at(rule->list, i);
        if (offset < before || offset > rule->tokens)
            return rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s[%lld] = %lld is outside %lld ... %s = %lld",
                               rule->name, (long long)i, (long long)offset, (long long)before, rule->tokens_name,
                               (long long)rule->tokens);
        if (i > 0 && offset - before > rule->length)
            return rapt_refuse(v->message, RAPT_INVALID_VALUE,
                               "%s[%lld] = %lld is %lld after the one before; %s = %lld", rule->name,
                               (long long)i, (long long)offset, (long long)(offset - before),
                               rule->length_name, (long long)rule->length);
        before = offset;
    }
    return RAPT_OK;
}

rapt_status rapt_check_index_lists(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const struct offsets_rule rules[] = {
        {"query_offsets", "query_length", "query_tokens", desc->query_offsets, desc->query_length, desc->query_tokens},
        {"kv_offsets", "kv_length", "kv_tokens", desc->kv_offsets, desc->kv_length, desc->kv_tokens}};
    rapt_status status = check_index_list(v, "query_lengths", desc->query_lengths, 0, desc->query_length);
    if (status == RAPT_OK)
        status = check_index_list(v, "kv_lengths", desc->kv_lengths, 0, desc->kv_length);
    if (status == RAPT_OK)
        status = check_index_list(v, "query_position", desc->query_position, -RAPT_MAX_POSITION, RAPT_MAX_POSITION);
    if (status == RAPT_OK)
        status = check_index_list(v, "key_position", desc->key_position, 0, RAPT_MAX_POSITION);
    for (int i = 0; status == RAPT_OK && i < 2; i++)
        status = check_offsets(v, &rules[i]);
    return status;
}

static bool is_sink(float x) { return x == -__builtin_inff() || rapt_finite_log2e(x); }

static rapt_status check_head_list(struct rapt_validation *v, const char *name, const float *list,
                                   bool (*legal)(float), const char *rule) {
    const int64_t heads = v->desc->query_heads;
    if (!list)
        return RAPT_OK;
    const rapt_status status = rapt_check_list_bytes(v, name, list, heads, sizeof *list, sizeof *list);
    if (status != RAPT_OK)
        return status;
    for (int64_t head = 0; head < heads; head++)
        if (!legal(list[head]))
            return rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s[%lld] = %g %s", name, (long long)head,
                               (double)list[head], rule);
    return RAPT_OK;
}

rapt_status rapt_check_head_lists(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const char *must_be_finite = "must be finite, also after multiplication by log2(e)";
    rapt_status status =
        check_head_list(v, "bias_head_factor", desc->bias_head_factor, rapt_finite_log2e, must_be_finite);
    if (status == RAPT_OK)
        status = check_head_list(v, "alibi_slopes", desc->alibi_slopes, rapt_finite_log2e, must_be_finite);
    if (status == RAPT_OK)
        status = check_head_list(v, "sinks", desc->sinks, is_sink,
                                 "must be -infinity or finite, also after multiplication by log2(e)");
    return status;
}

rapt_status rapt_check_list(struct rapt_validation *v, const char *name, rapt_index_list list, int64_t count) {
    const struct entries entries = {count, "", " entries are read", count};
    const rapt_status status = check_fields(v, name, list, entries);
    if (status != RAPT_OK || !list.data || !count)
        return status;
    return rapt_check_list_bytes(v, name, list.data, count, list.index_bytes, list.stride_bytes);
}
