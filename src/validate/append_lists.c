/* SPDX-License-Identifier: MIT
 * The lists of an append: their memory, and every number that will be used. */
#include "append/lists.h"
#include "checked.h"
#include "pages.h"
#include "validate/append.h"
#include "validate/parts.h"

static rapt_status check_memory(struct rapt_validation *v, const rapt_append_desc *d,
                                const struct rapt_append_names *names) {
    const int64_t tokens = rapt_append_count(d);
    static const struct rapt_page_names of_pages = {"pages", "pages.entries", "pages.offsets",
                                                    "pages.batch_stride_bytes"};
    const struct {
        const char *name;
        rapt_index_list list;
        int64_t count;
    } lists[] = {{"lengths", d->lengths, d->batch},
                 {"offsets", d->offsets, d->batch + 1},
                 {names->positions, d->positions, d->batch},
                 {"slots", d->slots, tokens},
                 {names->rotary_positions, d->rotary_positions, tokens}};
    if (d->rotary.pairing && d->slots.data && tokens && !d->rotary_positions.data)
        return rapt_refuse(v->message, RAPT_NULL_POINTER, "%s.data is NULL", names->rotary_positions);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const rapt_status status = rapt_check_list(v, lists[i].name, lists[i].list, lists[i].count);
        if (status != RAPT_OK)
            return status;
    }
    if (d->pages.kind == RAPT_PAGES_DENSE && d->pages.entries.count == 0 && tokens)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "pages.entries.count = 0, but %lld tokens are appended",
                           (long long)tokens);
    if (d->pages.kind != RAPT_PAGES_NONE) {
        const rapt_status status = rapt_check_page_memory(v, &of_pages, &d->pages, tokens ? d->batch : 0);
        if (status != RAPT_OK)
            return status;
    }
    if (d->rotary_positions.data && !d->rotary.pairing)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s is set, but rotary.pairing = 0", names->rotary_positions);
    return RAPT_OK;
}

/* Rows of floats that are read, at a stride. */
static rapt_status add_floats(struct rapt_validation *v, const char *name, const float *data, int64_t rows,
                              int64_t row_floats, int64_t stride_bytes) {
    int64_t bytes;
    if (!data || rows == 0)
        return RAPT_OK;
    if (!rapt_mul_fits(rows - 1, stride_bytes, &bytes) || !rapt_add_fits(bytes, row_floats * 4, &bytes))
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE,
                           "%s: %lld positions at rotary.table_stride_bytes = %lld overflow", name, (long long)rows,
                           (long long)stride_bytes);
    return rapt_check_list_bytes(v, name, data, bytes / 4, sizeof(float), sizeof(float));
}

static rapt_status check_rotary_memory(struct rapt_validation *v, const rapt_rotary *rotary) {
    const int64_t pairs = rotary->dim / 2, positions = rotary->table_positions;
    rapt_status status = add_floats(v, "rotary.cosines", rotary->cosines, positions, pairs, rotary->table_stride_bytes);
    if (status == RAPT_OK)
        status = add_floats(v, "rotary.sines", rotary->sines, positions, pairs, rotary->table_stride_bytes);
    return status == RAPT_OK ? add_floats(v, "rotary.frequencies", rotary->frequencies, 1, pairs, 0) : status;
}

/* ---------------------------------------------------------------- numbers */

static rapt_status check_lengths(struct rapt_validation *v, const rapt_append_desc *d) {
    const struct rapt_bounded_list lengths = {"lengths", d->lengths, 0, d->length};
    const struct rapt_offset_list offsets = {"offsets", "length", "tokens", d->offsets, d->length, d->tokens};
    const rapt_status status = rapt_check_bounded(&lengths, d->batch, v->message);
    return status == RAPT_OK ? rapt_check_offsets(&offsets, d->batch, v->message) : status;
}

/* The tokens of a sequence one by one. */
static rapt_status check_tokens(struct rapt_validation *v, const rapt_append_desc *d,
                                const struct rapt_append_names *names, struct rapt_append_run run) {
    const int64_t slots = d->pages.pages * d->pages.page_tokens;
    const struct rapt_rotary_range rotary = rapt_rotary_range_of(&d->rotary);
    for (int64_t i = run.first; i < run.first + run.count; i++) {
        const int64_t slot = d->slots.data ? rapt_index_at(d->slots, i) : 0;
        if (d->slots.data && slot >= slots)
            return rapt_refuse_entry("slots", i, slot, 0, slots - 1, v->message);
        if (slot < 0 || !d->rotary_positions.data)
            continue;
        const int64_t position = rapt_index_at(d->rotary_positions, i);
        if (!rapt_is_inside(position, rotary.least, rotary.most))
            return rapt_refuse_entry(names->rotary_positions, i, position, rotary.least, rotary.most, v->message);
    }
    return RAPT_OK;
}

static rapt_status refuse_page(struct rapt_validation *v, const rapt_append_desc *d, int64_t b, int64_t page,
                               int64_t position) {
    const struct rapt_append_entries entries = rapt_append_entries_of(d, b);
    int64_t begin, end;
    rapt_status status = RAPT_OK;
    if (d->pages.kind == RAPT_PAGES_LISTED)
        status = rapt_pages_check_offsets(&d->pages, "pages", b, &begin, &end, v->message);
    if (status != RAPT_OK)
        return status;
    if (page >= entries.count)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE,
                           "pages: sequence %lld has %lld entries, but positions[%lld] = %lld takes its page %lld",
                           (long long)b, (long long)entries.count, (long long)b, (long long)position, (long long)page);
    return rapt_refuse(v->message, RAPT_INVALID_VALUE,
                       "pages: page %lld of sequence %lld, for positions[%lld] = %lld, is entry %lld, outside "
                       "0 ... %lld",
                       (long long)page, (long long)b, (long long)b, (long long)position,
                       (long long)rapt_index_at(entries.list, entries.first + page), (long long)(d->pages.pages - 1));
}

/* Pages that new tokens go to. */
static rapt_status check_page_entries(struct rapt_validation *v, const rapt_append_desc *d, int64_t b, int64_t position,
                                      int64_t count) {
    const struct rapt_cache_shape shape = rapt_cache_shape_of(d);
    const int64_t first = position / shape.page_tokens, last = (position + count - 1) / shape.page_tokens;
    for (int64_t page = first; page <= last; page++)
        if (rapt_append_page(d, b, page) < 0)
            return refuse_page(v, d, b, page, position);
    return RAPT_OK;
}

/* Whether the caches have room for new tokens from a position on. */
static rapt_status check_room(struct rapt_validation *v, const rapt_append_desc *d, int64_t b, int64_t position,
                              int64_t count) {
    if (!rapt_cache_shape_of(d).paged && position > d->cache_length - count)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE,
                           "positions[%lld] = %lld: its %lld new tokens reach beyond the %lld of its cache",
                           (long long)b, (long long)position, (long long)count, (long long)d->cache_length);
    return check_page_entries(v, d, b, position, count);
}

/* Whether rotary covers tokens from a position on. */
static rapt_status check_rotation(struct rapt_validation *v, const rapt_append_desc *d, const char *name, int64_t b,
                                  int64_t position, int64_t count) {
    const struct rapt_rotary_range rotary = rapt_rotary_range_of(&d->rotary);
    if (position + count - 1 > rotary.most)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE,
                           "%s[%lld] = %lld: the last of its %lld tokens is outside %lld ... %lld of rotary", name,
                           (long long)b, (long long)position, (long long)count, (long long)rotary.least,
                           (long long)rotary.most);
    return RAPT_OK;
}

/* The place, except in rapt_rotate, and the rotation, unless rotary_positions has it. */
static rapt_status check_position(struct rapt_validation *v, const rapt_append_desc *d,
                                  const struct rapt_append_names *names, int64_t b, int64_t count) {
    const bool has_place = !rapt_rotates_alone(d);
    const int64_t position = rapt_index_at(d->positions, b);
    const int64_t least = has_place ? 0 : rapt_rotary_range_of(&d->rotary).least;
    if ((has_place || count > 0) && !rapt_is_inside(position, least, RAPT_MAX_POSITION))
        return rapt_refuse_entry(names->positions, b, position, least, RAPT_MAX_POSITION, v->message);
    if (count == 0)
        return RAPT_OK;
    const rapt_status status = has_place ? check_room(v, d, b, position, count) : RAPT_OK;
    const bool is_turned = d->rotary.pairing && !d->rotary_positions.data;
    return status == RAPT_OK && is_turned ? check_rotation(v, d, names->positions, b, position, count) : status;
}

rapt_status rapt_check_append_lists(struct rapt_validation *v, const rapt_append_desc *d,
                                    const struct rapt_append_names *names) {
    const bool per_token = d->slots.data || (d->rotary_positions.data && d->rotary.pairing);
    rapt_status status = check_memory(v, d, names);
    if (status == RAPT_OK)
        status = check_rotary_memory(v, &d->rotary);
    if (status == RAPT_OK)
        status = check_lengths(v, d);
    for (int64_t b = 0; status == RAPT_OK && rapt_append_count(d) && b < d->batch; b++) {
        const struct rapt_append_run run = rapt_append_run_of(d, b);
        if (d->positions.data)
            status = check_position(v, d, names, b, run.count);
        if (status == RAPT_OK && per_token)
            status = check_tokens(v, d, names, run);
    }
    return status;
}
