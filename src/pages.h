/* SPDX-License-Identifier: MIT
 * Page tables: their entries, and which are legal; for every stage. attend/paged.h says where a page lies. */
#ifndef RAPT_PAGES_H
#define RAPT_PAGES_H

#include <string.h>

#include "sequence.h"

/* Entries that a sequence of so many keys reads. */
static inline int64_t rapt_pages_required(const rapt_page_table *table, int64_t keys) {
    return rapt_is_paged(table) ? rapt_quotient_up(keys, table->page_tokens) : keys > 0;
}

/* Whether keys and values have the same table, as is common: then its entries are checked once. */
static inline bool rapt_is_one_table(const rapt_attention_desc *desc) {
    return memcmp(&desc->key_pages, &desc->value_pages, sizeof desc->key_pages) == 0;
}

/* Whether all sequences have the same pages. */
static inline bool rapt_shares_pages(const rapt_page_table *table) {
    return table->kind == RAPT_PAGES_NONE || (table->kind == RAPT_PAGES_DENSE && table->batch_stride_bytes == 0);
}

/* The entry at this moment, which may be any number. first: kv_first of the sequence. */
static inline int64_t rapt_page_entry(const rapt_page_table *table, int64_t batch, int64_t first, int64_t page) {
    rapt_index_list entries = table->entries;
    if (table->kind == RAPT_PAGES_DENSE)
        entries.data = (const char *)entries.data + batch * table->batch_stride_bytes;
    return rapt_index_at(entries, table->kind == RAPT_PAGES_LISTED ? first + page : page);
}

static inline bool rapt_is_page(const rapt_page_table *table, int64_t entry) {
    return entry >= 0 && entry < table->pages;
}

/* The page, or 0 if no page is entered: a caller may have changed the table since it was checked. */
static inline int64_t rapt_page_at(const rapt_page_table *table, int64_t batch, int64_t first, int64_t page) {
    const int64_t entry = rapt_page_entry(table, batch, first, page);
    return rapt_is_page(table, entry) ? entry : 0;
}

/* Which entries of a listed table a sequence has at this moment: [begin, end). */
rapt_status rapt_pages_check_offsets(const rapt_page_table *table, const char *name, int64_t batch, int64_t *begin,
                                     int64_t *end, rapt_message *message);

/* Sets kv_first of a sequence with legal lengths, from the table of a side. RAPT_OK promises that the table has entries
 * for all its keys and, if checked_bytes is not NULL, that these were legal just now. Otherwise message, which may be
 * NULL, says what is wrong. Sequences follow in order and share checked_bytes, which begins at 0: how far from the
 * first entry of a dense table entries were checked, so that those which its rows share are checked once. */
rapt_status rapt_pages_find(const rapt_attention_desc *desc, int side, int64_t batch, int64_t *checked_bytes,
                            struct rapt_sequence *sequence, rapt_message *message);

#endif
