/* SPDX-License-Identifier: MIT */
#include "pages.h"

#include "refuse.h"

static const char *name_of(int side) { return side == RAPT_KEYS ? "key_pages" : "value_pages"; }

rapt_status rapt_pages_check_offsets(const rapt_page_table *table, const char *name, int64_t batch, int64_t *begin,
                                     int64_t *end, rapt_message *message) {
    *begin = rapt_index_at(table->offsets, batch);
    *end = rapt_index_at(table->offsets, batch + 1);
    if (*begin < 0 || *begin > *end || *end > table->entries.count)
        return rapt_refuse(message, RAPT_INVALID_VALUE,
                           "%s.offsets[%lld] = %lld and the next, %lld, do not grow within 0 ... entries.count = %lld",
                           name, (long long)batch, (long long)*begin, (long long)*end,
                           (long long)table->entries.count);
    return RAPT_OK;
}

static rapt_status find_listed(const rapt_page_table *table, const char *name, int64_t batch, int64_t required,
                               int64_t *first, rapt_message *message) {
    int64_t begin, end;
    const rapt_status status = rapt_pages_check_offsets(table, name, batch, &begin, &end, message);
    if (status != RAPT_OK)
        return status;
    if (end - begin < required)
        return rapt_refuse(message, RAPT_OUT_OF_EXTENT, "%s: sequence %lld has %lld pages, but %lld with keys", name,
                           (long long)batch, (long long)(end - begin), (long long)required);
    *first = begin;
    return RAPT_OK;
}

/* Reads the entry once, so that the checked value is used. */
static rapt_status find_row(const rapt_page_table *table, const char *name, int64_t batch, int64_t required,
                            int64_t *first, rapt_message *message) {
    const int64_t row = required ? rapt_index_at(table->entries, batch) : 0;
    *first = row;
    return !required || rapt_is_page(table, row)
               ? RAPT_OK
               : rapt_refuse(message, RAPT_INVALID_VALUE, "%s.entries[%lld] = %lld is outside 0 ... %lld", name,
                             (long long)batch, (long long)row, (long long)(table->pages - 1));
}

/* How many first entries of a row were checked as entries of earlier rows: rows of a dense table may be one, or
 * overlap. */
static int64_t pages_known(const rapt_page_table *table, int64_t batch, int64_t checked_bytes) {
    const int64_t stride = table->entries.stride_bytes, row = batch * table->batch_stride_bytes;
    const bool may_overlap = table->kind == RAPT_PAGES_DENSE && table->batch_stride_bytes % stride == 0;
    return may_overlap && checked_bytes > row ? rapt_quotient_up(checked_bytes - row, stride) : 0;
}

/* ASSUME required >= 1. */
static rapt_status check_entries(const rapt_page_table *table, const char *name, int64_t batch, int64_t required,
                                 int64_t first, int64_t *checked_bytes, rapt_message *message) {
    const int64_t stride = table->entries.stride_bytes;
    const int64_t row = table->kind == RAPT_PAGES_DENSE ? batch * table->batch_stride_bytes : first * stride;
    rapt_index_list entries = table->entries;
    entries.data = (const char *)entries.data + row;
    for (int64_t page = pages_known(table, batch, *checked_bytes); page < required; page++) {
        const int64_t entry = rapt_index_at(entries, page);
        if (!rapt_is_page(table, entry))
            return rapt_refuse(message, RAPT_INVALID_VALUE,
                               "%s: page %lld of sequence %lld is %lld, outside 0 ... %lld", name, (long long)page,
                               (long long)batch, (long long)entry, (long long)(table->pages - 1));
    }
    const int64_t end = row + (required - 1) * stride + 1;
    *checked_bytes = end > *checked_bytes ? end : *checked_bytes;
    return RAPT_OK;
}

rapt_status rapt_pages_find(const rapt_attention_desc *desc, int side, int64_t batch, int64_t *checked_bytes,
                            struct rapt_sequence *sequence, rapt_message *message) {
    const rapt_page_table *table = rapt_pages_of(desc, side);
    const char *name = name_of(side);
    const int64_t required = rapt_pages_required(table, sequence->kv_length);
    int64_t *first = &sequence->kv_first[side];
    rapt_status status = RAPT_OK;
    if (table->kind == RAPT_PAGES_NONE)
        return RAPT_OK;
    *first = 0;
    if (required && !table->entries.data)
        return rapt_refuse(message, RAPT_NULL_POINTER, "%s.entries.data is NULL", name);
    if (table->kind == RAPT_PAGES_ROW)
        return find_row(table, name, batch, required, first, message);
    if (table->kind == RAPT_PAGES_LISTED)
        status = find_listed(table, name, batch, required, first, message);
    else if (required > table->entries.count)
        status = rapt_refuse(message, RAPT_OUT_OF_EXTENT,
                             "%s: sequence %lld has keys in %lld pages, entries.count = %lld", name, (long long)batch,
                             (long long)required, (long long)table->entries.count);
    return status == RAPT_OK && checked_bytes && required
               ? check_entries(table, name, batch, required, *first, checked_bytes, message)
               : status;
}
