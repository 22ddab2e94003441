/* SPDX-License-Identifier: MIT
 * Page tables: their fields, the memory of their lists, their entries. */
#include <string.h>

#include "pages.h"
#include "validate/parts.h"

static const struct rapt_page_names names[RAPT_SIDES] = {
    {"key_pages", "key_pages.entries", "key_pages.offsets", "key_pages.batch_stride_bytes"},
    {"value_pages", "value_pages.entries", "value_pages.offsets", "value_pages.batch_stride_bytes"}};

static rapt_status refuse_number(struct rapt_validation *v, rapt_status status, const char *name, const char *field,
                                 int64_t number, const char *why) {
    return rapt_refuse(v->message, status, "%s.%s = %lld %s", name, field, (long long)number, why);
}

static rapt_status check_reserved(struct rapt_validation *v, const char *name, const rapt_page_table *table) {
    if (table->reserved_zero)
        return refuse_number(v, RAPT_UNUSED_FIELD, name, "reserved_zero", table->reserved_zero, "is not 0");
    for (int i = 0; i < (int)(sizeof table->reserved / sizeof *table->reserved); i++)
        if (table->reserved[i])
            return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.reserved[%d] = %llu is not 0", name, i,
                               (unsigned long long)table->reserved[i]);
    return RAPT_OK;
}

/* Fields that the kind does not use. */
static rapt_status check_unused(struct rapt_validation *v, const char *name, const rapt_page_table *table) {
    static const rapt_index_list no_list = {0};
    if (table->kind == RAPT_PAGES_ROW && table->page_tokens)
        return refuse_number(v, RAPT_UNUSED_FIELD, name, "page_tokens", table->page_tokens,
                             "is set, but kind = 3 has rows");
    if (table->kind != RAPT_PAGES_DENSE && table->batch_stride_bytes)
        return refuse_number(v, RAPT_UNUSED_FIELD, name, "batch_stride_bytes", table->batch_stride_bytes,
                             "is set, but kind is not 1");
    if (table->kind != RAPT_PAGES_LISTED && memcmp(&table->offsets, &no_list, sizeof no_list) != 0)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.offsets is set, but kind is not 2", name);
    return RAPT_OK;
}

rapt_status rapt_check_page_fields(struct rapt_validation *v, const char *name, const rapt_page_table *table) {
    static const rapt_page_table none = {0};
    if (table->kind < 0 || table->kind > RAPT_PAGES_ROW)
        return refuse_number(v, RAPT_UNSUPPORTED_FLAG, name, "kind", table->kind, "is outside 0 ... 3");
    if (table->kind == RAPT_PAGES_NONE)
        return memcmp(table, &none, sizeof none) == 0
                   ? RAPT_OK
                   : rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s is set, but its kind is 0", name);
    if (table->pages < 0 || table->pages > RAPT_MAX_SIZE)
        return refuse_number(v, RAPT_INVALID_SHAPE, name, "pages", table->pages, "is outside 0 ... 2^40");
    if (rapt_is_paged(table) && (table->page_tokens < 1 || table->page_tokens > RAPT_MAX_SIZE))
        return refuse_number(v, RAPT_INVALID_SHAPE, name, "page_tokens", table->page_tokens, "is outside 1 ... 2^40");
    const rapt_status status = check_reserved(v, name, table);
    return status == RAPT_OK ? check_unused(v, name, table) : status;
}

rapt_status rapt_check_page_tables(struct rapt_validation *v) {
    rapt_status status = RAPT_OK;
    for (int side = 0; side < RAPT_SIDES && status == RAPT_OK; side++)
        status = rapt_check_page_fields(v, names[side].table, rapt_pages_of(v->desc, side));
    return status;
}

/* Entries are [batch][columns] or in one row. */
rapt_status rapt_check_page_memory(struct rapt_validation *v, const struct rapt_page_names *of,
                                   const rapt_page_table *table, int64_t batch) {
    const bool dense = table->kind == RAPT_PAGES_DENSE, listed = table->kind == RAPT_PAGES_LISTED;
    const int64_t read = table->kind == RAPT_PAGES_ROW ? batch : table->entries.count;
    rapt_status status = RAPT_OK;
    if (listed && batch && !table->offsets.data)
        status = rapt_refuse(v->message, RAPT_NULL_POINTER, "%s.data is NULL", of->offsets);
    if (status == RAPT_OK && listed)
        status = rapt_check_list(v, of->offsets, table->offsets, batch + 1);
    if (status == RAPT_OK)
        status = rapt_check_list(v, of->entries, table->entries, read);
    if (status != RAPT_OK || !dense || !table->entries.data || !read)
        return status;
    return rapt_repeat_list(v, of->batch_stride, batch, table->batch_stride_bytes, table->entries.index_bytes);
}

/* No memory bounds a batch of sequences that are all alike: only the first is checked. */
static rapt_status check_sequences(struct rapt_validation *v, int side) {
    const rapt_attention_desc *desc = v->desc;
    const bool alike = rapt_shares_pages(rapt_pages_of(desc, side)) && !desc->kv_lengths.data && !desc->kv_offsets.data;
    const int64_t batch = alike && desc->batch > 1 ? 1 : desc->batch;
    rapt_status status = RAPT_OK;
    int64_t checked_bytes = 0;
    for (int64_t b = 0; b < batch && status == RAPT_OK; b++) {
        struct rapt_sequence sequence = rapt_sequence_of(desc, b);
        if (sequence.kv_length < 0 || sequence.kv_length > desc->kv_length)
            return rapt_refuse(v->message, RAPT_INVALID_VALUE, "the length of sequence %lld changed to %lld meanwhile",
                               (long long)b, (long long)sequence.kv_length);
        status = rapt_pages_find(desc, side, b, &checked_bytes, &sequence, v->message);
    }
    return status;
}

rapt_status rapt_check_page_lists(struct rapt_validation *v) {
    rapt_status status = RAPT_OK;
    for (int side = 0; side < RAPT_SIDES && status == RAPT_OK; side++) {
        const rapt_page_table *table = rapt_pages_of(v->desc, side);
        /* Without keys, no memory but offsets bounds the batch. */
        const bool has_pages = v->desc->kv_length > 0 || table->kind == RAPT_PAGES_LISTED;
        const bool is_checked = side == RAPT_VALUES && rapt_is_one_table(v->desc);
        if (table->kind == RAPT_PAGES_NONE)
            continue;
        status = rapt_check_page_memory(v, &names[side], table, v->desc->batch);
        if (status == RAPT_OK && has_pages && v->memory != RAPT_MEMORY_BINDING && !is_checked)
            status = check_sequences(v, side);
    }
    return status;
}
