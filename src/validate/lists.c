/* SPDX-License-Identifier: MIT
 * Lists: one integer per sequence, one float per query head. */
#include "assume.h"
#include "validate/parts.h"

/* ASSUME count >= 1. RAPT_OK: the entries do not wrap around the address space. */
rapt_status rapt_check_list_bytes(struct rapt_validation *v, const char *name, const void *data, int64_t count,
                                  int64_t entry_bytes, int64_t stride_bytes) {
    const bool gaps = stride_bytes != entry_bytes && count > 1;
    struct rapt_footprint list = {.name = name,
                                  .size = {1, 1, gaps ? count : 1},
                                  .stride = {0, 0, gaps ? stride_bytes : 0}};
    struct rapt_reach reach = {0, entry_bytes};
    RAPT_ASSUME(count >= 1);
    if ((uintptr_t)data % (uintptr_t)entry_bytes)
        return rapt_refuse(v->message, RAPT_MISALIGNED_POINTER, "%s = %p is not aligned to %lld bytes", name,
                           data, (long long)entry_bytes);
    if (!rapt_add_reach(count, stride_bytes, &reach) || !rapt_place(&list, data, reach))
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE, "%s = %p: %lld entries leave the address space",
                           name, data, (long long)count);
    list.row_bytes = gaps ? entry_bytes : list.bytes;
    v->footprints[v->footprint_count++] = list;
    return RAPT_OK;
}

/* How many entries are read, and how messages say so: "batch = 3 takes one more". */
struct count {
    int64_t read;
    const char *before, *after;
    int64_t said;
};

static rapt_status check_absent(struct rapt_validation *v, const char *name, rapt_index_list list) {
    const struct rapt_field fields[] = {
        {"index_bytes", list.index_bytes}, {"count", list.count}, {"stride_bytes", list.stride_bytes}};
    return rapt_check_unset(name, fields, sizeof fields / sizeof *fields, v->message);
}

static rapt_status check_fields(struct rapt_validation *v, const char *name, rapt_index_list list,
                                struct count count) {
    if (list.reserved_zero)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.reserved_zero = %d is not 0", name,
                           (int)list.reserved_zero);
    if (!list.data && count.said)
        return check_absent(v, name, list);
    if (list.data && list.index_bytes != 4 && list.index_bytes != 8)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s.index_bytes = %d is neither 4 nor 8", name,
                           (int)list.index_bytes);
    if (list.count < 0)
        return rapt_refuse(v->message, RAPT_OUT_OF_EXTENT, "%s.count = %lld is negative", name, (long long)list.count);
    if (list.count && list.count < count.read)
        return rapt_refuse(v->message, RAPT_OUT_OF_EXTENT, "%s.count = %lld, but %s%lld%s", name,
                           (long long)list.count, count.before, (long long)count.said, count.after);
    if (list.data && (list.stride_bytes < list.index_bytes || list.stride_bytes % list.index_bytes))
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE,
                           "%s.stride_bytes = %lld is not a positive multiple of index_bytes = %d", name,
                           (long long)list.stride_bytes, (int)list.index_bytes);
    return RAPT_OK;
}

static rapt_status check_list(struct rapt_validation *v, const char *name, rapt_index_list list, struct count count) {
    const rapt_status status = check_fields(v, name, list, count);
    if (status != RAPT_OK || !list.data || !count.read)
        return status;
    return rapt_check_list_bytes(v, name, list.data, count.read, list.index_bytes, list.stride_bytes);
}

rapt_status rapt_check_list(struct rapt_validation *v, const char *name, rapt_index_list list, int64_t read) {
    return check_list(v, name, list, (struct count){read, "", " entries are read", read});
}

/* A list of one entry per sequence, or of one more. */
static rapt_status check_list_of_batch(struct rapt_validation *v, const char *name, rapt_index_list list,
                                       int64_t read) {
    const int64_t batch = v->desc->batch;
    return check_list(v, name, list, (struct count){read, "batch = ", read > batch ? " takes one more" : "", batch});
}

rapt_status rapt_repeat_list(struct rapt_validation *v, const char *name, int64_t batch, int64_t stride_bytes,
                             int64_t index_bytes) {
    struct rapt_footprint *f = &v->footprints[v->footprint_count - 1];
    struct rapt_reach reach = {0, f->bytes};
    if (batch <= 1)
        return RAPT_OK;
    if (stride_bytes < 0 || stride_bytes % index_bytes)
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE,
                           "%s = %lld is negative or not a multiple of index_bytes = %lld", name,
                           (long long)stride_bytes, (long long)index_bytes);
    if (!rapt_add_reach(batch, stride_bytes, &reach) || !rapt_place(f, (const void *)f->begin, reach))
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE, "%s: %lld rows of %lld bytes leave the address space", name,
                           (long long)batch, (long long)stride_bytes);
    f->size[0] = batch;
    f->stride[0] = stride_bytes;
    return RAPT_OK;
}

rapt_status rapt_refuse_entry(const char *name, int64_t i, int64_t entry, int64_t least, int64_t most,
                              rapt_message *message) {
    return rapt_refuse(message, RAPT_INVALID_VALUE, "%s[%lld] = %lld is outside %lld ... %lld", name, (long long)i,
                       (long long)entry, (long long)least, (long long)most);
}

rapt_status rapt_check_bounded(const struct rapt_bounded_list *bounded, int64_t count, rapt_message *message) {
    for (int64_t i = 0; bounded->list.data && i < count; i++) {
        const int64_t entry = rapt_index_at(bounded->list, i);
        if (entry < bounded->least || entry > bounded->most)
            return rapt_refuse_entry(bounded->name, i, entry, bounded->least, bounded->most, message);
    }
    return RAPT_OK;
}

rapt_status rapt_check_offsets(const struct rapt_offset_list *offsets, int64_t batch, rapt_message *message) {
    for (int64_t i = 0, before = 0; offsets->list.data && i <= batch; i++) {
        const int64_t offset = rapt_index_at(offsets->list, i);
        if (offset < before || offset > offsets->tokens)
            return rapt_refuse(message, RAPT_INVALID_VALUE, "%s[%lld] = %lld is outside %lld ... %s = %lld",
                               offsets->name, (long long)i, (long long)offset, (long long)before, offsets->tokens_name,
                               (long long)offsets->tokens);
        if (i > 0 && offset - before > offsets->length)
            return rapt_refuse(message, RAPT_INVALID_VALUE, "%s[%lld] = %lld is %lld after the one before; %s = %lld",
                               offsets->name, (long long)i, (long long)offset, (long long)(offset - before),
                               offsets->length_name, (long long)offsets->length);
        before = offset;
    }
    return RAPT_OK;
}

static rapt_status check_index_list(struct rapt_validation *v, const struct rapt_bounded_list *bounded) {
    const int64_t batch = v->desc->batch;
    if (rapt_is_zero(&bounded->list, sizeof bounded->list)) /* as most are */
        return RAPT_OK;
    const rapt_status status = check_list_of_batch(v, bounded->name, bounded->list, batch);
    const bool is_checked = v->memory == RAPT_MEMORY_BINDING;
    return status != RAPT_OK || is_checked ? status : rapt_check_bounded(bounded, batch, v->message);
}

static rapt_status check_offset_list(struct rapt_validation *v, const struct rapt_offset_list *offsets) {
    const int64_t batch = v->desc->batch;
    if (rapt_is_zero(&offsets->list, sizeof offsets->list))
        return RAPT_OK;
    const rapt_status status = check_list_of_batch(v, offsets->name, offsets->list, batch + 1);
    const bool is_checked = v->memory == RAPT_MEMORY_BINDING;
    return status != RAPT_OK || is_checked ? status : rapt_check_offsets(offsets, batch, v->message);
}

rapt_status rapt_check_index_lists(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const struct rapt_bounded_list bounded[] = {
        {"query_lengths", desc->query_lengths, 0, desc->query_length},
        {"kv_lengths", desc->kv_lengths, 0, desc->kv_length},
        {"query_position", desc->query_position, -RAPT_MAX_POSITION, RAPT_MAX_POSITION},
        {"key_position", desc->key_position, 0, RAPT_MAX_POSITION}};
    const struct rapt_offset_list offsets[] = {
        {"query_offsets", "query_length", "query_tokens", desc->query_offsets, desc->query_length, desc->query_tokens},
        {"kv_offsets", "kv_length", "kv_tokens", desc->kv_offsets, desc->kv_length, desc->kv_tokens}};
    rapt_status status = RAPT_OK;
    for (size_t i = 0; status == RAPT_OK && i < sizeof bounded / sizeof *bounded; i++)
        status = check_index_list(v, &bounded[i]);
    for (size_t i = 0; status == RAPT_OK && i < sizeof offsets / sizeof *offsets; i++)
        status = check_offset_list(v, &offsets[i]);
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
