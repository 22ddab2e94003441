/* SPDX-License-Identifier: MIT
 * The lists of an append: where each token goes. Shared by validation, which reads all of them, and by the tasks, which
 * read them again. */
#ifndef RAPT_APPEND_LISTS_H
#define RAPT_APPEND_LISTS_H

#include "pages.h"
#include "rapt/cache.h"

/* A bit of features that append/describe.c sets for a rapt_rotate_desc: tokens have the same place in key_cache as in
 * key, and positions are for the rotation alone. */
#define RAPT_ROTATES_ALONE (UINT32_C(1) << 31)

static inline bool rapt_rotates_alone(const rapt_append_desc *d) { return d->features & RAPT_ROTATES_ALONE; }

/* New tokens of sequence b: the number of the first one among all tokens, and how many. */
struct rapt_append_run {
    int64_t first, count;
};

static inline bool rapt_is_inside(int64_t x, int64_t least, int64_t most) { return x >= least && x <= most; }

/* Entries of per-token lists, at most. */
static inline int64_t rapt_append_count(const rapt_append_desc *d) {
    return d->offsets.data ? d->tokens : d->batch * d->length;
}

/* Reads the lists; no tokens if these make no sense. */
static inline struct rapt_append_run rapt_append_run_of(const rapt_append_desc *d, int64_t b) {
    struct rapt_append_run run = {b * d->length, d->lengths.data ? rapt_index_at(d->lengths, b) : d->length};
    if (d->offsets.data) {
        run.first = rapt_index_at(d->offsets, b);
        const int64_t end = rapt_index_at(d->offsets, b + 1);
        run.count = run.first >= 0 && rapt_is_inside(end, run.first, d->tokens) ? end - run.first : 0;
    }
    return rapt_is_inside(run.count, 0, d->length) ? run : (struct rapt_append_run){0, 0};
}

/* The caches: pages of so many tokens; if they have none, the first dimension of their tensors counts as pages. */
struct rapt_cache_shape {
    int64_t pages, page_tokens;
    bool paged; /* page_stride_bytes leads from page to page */
};

/* Whether slots say where tokens go; an empty list may have no data. Asked before sizes are checked, so it multiplies
 * none. */
static inline bool rapt_is_by_slots(const rapt_append_desc *d) {
    const bool has_tokens = d->offsets.data ? d->tokens : d->batch && d->length;
    return d->slots.data || (!d->positions.data && !rapt_rotates_alone(d) && !d->pages.kind &&
                             d->pages.page_tokens > 0 && !has_tokens);
}

static inline struct rapt_cache_shape rapt_cache_shape_of(const rapt_append_desc *d) {
    const rapt_page_table *table = &d->pages;
    if (rapt_rotates_alone(d) && d->offsets.data)
        return (struct rapt_cache_shape){1, d->tokens, false};
    if (rapt_is_by_slots(d) || table->kind == RAPT_PAGES_DENSE || table->kind == RAPT_PAGES_LISTED)
        return (struct rapt_cache_shape){table->pages, table->page_tokens, true};
    return (struct rapt_cache_shape){table->kind == RAPT_PAGES_ROW ? table->pages : d->batch, d->cache_length, false};
}

/* The entries of a sequence: `count` of a list from `first` on. */
struct rapt_append_entries {
    rapt_index_list list;
    int64_t first, count;
};

/* As the table is at this moment; none if that makes no sense. */
static inline struct rapt_append_entries rapt_append_entries_of(const rapt_append_desc *d, int64_t b) {
    const rapt_page_table *table = &d->pages;
    struct rapt_append_entries entries = {table->entries, 0, table->entries.count};
    if (table->kind == RAPT_PAGES_ROW) {
        entries.first = b, entries.count = 1;
    } else if (table->kind == RAPT_PAGES_DENSE) {
        entries.list.data = (const char *)entries.list.data + b * table->batch_stride_bytes;
    } else {
        int64_t end;
        const rapt_status status = rapt_pages_check_offsets(table, "pages", b, &entries.first, &end, NULL);
        entries.count = status == RAPT_OK ? end - entries.first : 0;
    }
    return entries;
}

/* Where page `page` of sequence b is, as the table is at this moment; -1 = nowhere. */
static inline int64_t rapt_append_page(const rapt_append_desc *d, int64_t b, int64_t page) {
    if (d->pages.kind == RAPT_PAGES_NONE)
        return page == 0 ? b : -1;
    const struct rapt_append_entries entries = rapt_append_entries_of(d, b);
    const int64_t entry = page < entries.count ? rapt_index_at(entries.list, entries.first + page) : -1;
    return rapt_is_page(&d->pages, entry) ? entry : -1;
}

/* The positions that a rotary embedding covers. */
struct rapt_rotary_range {
    int64_t least, most;
};

static inline struct rapt_rotary_range rapt_rotary_range_of(const rapt_rotary *rotary) {
    return rotary->cosines ? (struct rapt_rotary_range){0, rotary->table_positions - 1}
                           : (struct rapt_rotary_range){-RAPT_MAX_ROTARY_POSITION, RAPT_MAX_ROTARY_POSITION};
}

#endif
