/* SPDX-License-Identifier: MIT
 * Where a fuzzed call's sequences lie: packed, in pages, in rows. */
#include "descriptor_decode.h"

enum { HOSTILE = 250 }; /* bytes above it */

static bool has_pages(const rapt_page_table *table) {
    return table->kind == RAPT_PAGES_DENSE || table->kind == RAPT_PAGES_LISTED;
}

struct counted queries_of(const rapt_attention_desc *d) {
    return d->query_offsets.data ? (struct counted){1, d->query_tokens} : (struct counted){d->batch, d->query_length};
}

struct counted keys_of(const rapt_attention_desc *d, const rapt_page_table *table) {
    if (table->kind)
        return (struct counted){table->pages, has_pages(table) ? table->page_tokens : d->kv_length};
    return d->kv_offsets.data ? (struct counted){1, d->kv_tokens} : (struct counted){d->batch, d->kv_length};
}

bool is_paged_tensor(const struct fuzzed_call *call, const rapt_tensor *tensor) {
    const rapt_attention_desc *d = &call->desc;
    return (tensor == &d->key && has_pages(&d->key_pages)) || (tensor == &d->value && has_pages(&d->value_pages));
}

/* Ascending, with gaps at both ends. */
static void decode_offsets(struct fuzzed_call *call, rapt_index_list *list, int64_t length, int64_t *tokens,
                           struct input *input) {
    const uint8_t way = take_byte(input), ends = take_byte(input);
    const int64_t batch = call->desc.batch, most = length > 0 && length < MOST_COMPUTED ? length : 0;
    if (batch < 0 || batch > MOST_LISTED)
        return;
    const struct region *region = make_list(call, list, batch + 1, way);
    int64_t offset = ends % 4;
    for (int64_t i = 0; i <= batch; i++) {
        const uint8_t choice = take_byte(input);
        offset += i == 0 ? 0 : choice > 128 ? most : choice * 13 % (most + 1);
        put_entry(region, list, i, choice > HOSTILE ? take_hostile(input) : offset);
    }
    *tokens = way & 4 ? take_hostile(input) : offset + ends / 4 % 4;
    if (way & 8)
        spoil_list(list, INT64_MAX, input);
}

/* ---- page tables: lists state what memory they have */

/* Pages that may hold a sequence's keys. */
static int64_t most_pages(const rapt_attention_desc *d, const rapt_page_table *table) {
    const int64_t keys = d->kv_length > 0 ? d->kv_length : 0;
    return keys / table->page_tokens + (keys % table->page_tokens != 0);
}

static void set_pages(const struct region *region, const rapt_page_table *table, int64_t entries, struct input *input) {
    for (int64_t i = 0; i < entries; i++) {
        const uint8_t choice = take_byte(input);
        put_entry(region, &table->entries, i,
                  choice > HOSTILE ? take_hostile(input) : table->pages > 0 ? choice % table->pages : 0);
    }
}

/* Rows that overlap, have gaps, or are one for all sequences. */
static void decode_dense(struct fuzzed_call *call, rapt_page_table *table, uint8_t way, uint8_t sizes,
                         struct input *input) {
    const int64_t batch = call->desc.batch, needed = most_pages(&call->desc, table);
    const int64_t columns = way & 16 ? needed + sizes / 64 - 1 : needed; /* perhaps one too few */
    const int64_t row = way & 32 ? columns + sizes / 64 : way & 64 ? 0 : columns;
    if (batch < 1 || batch > MOST_LISTED || columns < 1 || columns > MOST_LISTED || batch * (row + 1) > MOST_LISTED)
        return;
    const int64_t entries = (batch - 1) * row + columns;
    const struct region *region = make_list(call, &table->entries, entries, way);
    const int64_t step = table->entries.stride_bytes ? table->entries.stride_bytes : table->entries.index_bytes;
    set_pages(region, table, entries, input);
    table->entries.count = columns == needed && way & 128 ? 0 : columns;
    table->batch_stride_bytes = row * step;
}

static void decode_listed(struct fuzzed_call *call, rapt_page_table *table, uint8_t way, uint8_t sizes,
                          struct input *input) {
    const int64_t batch = call->desc.batch, needed = most_pages(&call->desc, table);
    if (batch < 0 || batch > MOST_LISTED || needed > MOST_LISTED || (batch + 1) * (needed + 3) > MOST_LISTED)
        return;
    const struct region *offsets = make_list(call, &table->offsets, batch + 1, take_byte(input));
    int64_t offset = sizes / 64;
    for (int64_t i = 0; i <= batch; i++) {
        const uint8_t choice = take_byte(input);
        offset += i == 0 ? 0 : choice & 32 ? choice % (needed + 3) : needed;
        put_entry(offsets, &table->offsets, i, choice > HOSTILE ? take_hostile(input) : offset);
    }
    const int64_t entries = offset + (way & 16 ? 1 : 0);
    set_pages(make_list(call, &table->entries, entries, way), table, entries, input);
    table->entries.count = entries;
}

static void decode_rows(struct fuzzed_call *call, rapt_page_table *table, uint8_t way, struct input *input) {
    const int64_t batch = call->desc.batch;
    if (batch < 0 || batch > MOST_LISTED)
        return;
    set_pages(make_list(call, &table->entries, batch, way), table, batch, input);
}

/* Makes one field wrong, or smaller. Without a stated count, other fields say how many entries are read. */
static void spoil_table(rapt_page_table *table, struct input *input) {
    const uint8_t field = take_byte(input);
    const bool is_stated = table->entries.count > 0 || !table->entries.data;
    const int64_t hostile = take_hostile(input);
    switch (field % 8) {
    case 0: table->kind = is_stated || hostile < 0 || hostile > RAPT_PAGES_ROW ? (int32_t)hostile : 0; break;
    case 1: table->page_tokens = is_stated ? hostile : INT64_MAX; break;
    case 2: table->pages = hostile; break;
    case 3: table->batch_stride_bytes = hostile < table->batch_stride_bytes ? hostile : 0; break;
    case 4: spoil_list(&table->entries, table->entries.count ? table->entries.count : -1, input); break;
    case 5: spoil_list(&table->offsets, INT64_MAX, input); break;
    case 6: (field & 8 ? &table->entries : &table->offsets)->data = NULL; break;
    default: table->reserved[field / 8 % 2] = (uint64_t)hostile; break;
    }
}

static void decode_table(struct fuzzed_call *call, rapt_page_table *table, struct input *input) {
    static const int64_t tokens[] = {1, 2, 3, 7, 16, 100, 256, 1000};
    const uint8_t kind = take_byte(input), way = take_byte(input), sizes = take_byte(input);
    table->kind = RAPT_PAGES_DENSE + kind % 3;
    table->page_tokens = tokens[sizes % 8];
    table->pages = 1 + sizes / 8 % 8 - (kind / 4 % 8 == 7);
    if (table->kind == RAPT_PAGES_DENSE)
        decode_dense(call, table, way, sizes, input);
    else if (table->kind == RAPT_PAGES_LISTED)
        decode_listed(call, table, way, sizes, input);
    else
        decode_rows(call, table, way, input);
    if (table->kind == RAPT_PAGES_ROW)
        table->page_tokens = 0;
    if (kind & 128)
        spoil_table(table, input);
}

void decode_places(struct fuzzed_call *call, struct input *input) {
    rapt_attention_desc *d = &call->desc;
    const uint8_t way = take_byte(input);
    if (way & 1)
        decode_offsets(call, &d->query_offsets, d->query_length, &d->query_tokens, input);
    if (way & 2)
        decode_offsets(call, &d->kv_offsets, d->kv_length, &d->kv_tokens, input);
    if (way & 4)
        decode_table(call, &d->key_pages, input);
    if (way & 8)
        decode_table(call, &d->value_pages, input);
    else if (way & 16)
        d->value_pages = d->key_pages;
}
