/* SPDX-License-Identifier: MIT */
#include "append/draw.h"

#include <math.h>

#include "reference/reference.h"
#include "support/stored.h"

enum { UNWRITTEN = 0xa5 };

/* Random order of dimensions, with gaps; returns the bytes that the tensor spans. */
static size_t draw_strides(struct random *random, int32_t dtype, const int64_t size[3], int64_t dim,
                           int64_t strides[3]) {
    const struct rapt_format_info *info = rapt_format_info(rapt_format_of(dtype));
    int64_t span = rapt_row_bytes(dtype, dim), reach = span;
    bool done[3] = {false, false, false};
    for (int step = 0; step < 3; step++) {
        int next = (int)random_below(random, 3);
        while (done[next])
            next = (next + 1) % 3;
        done[next] = true;
        strides[next] = span + (random_chance(random, 30) ? random_below(random, 4) * info->alignment : 0);
        if (size[next] > 0) {
            reach += (size[next] - 1) * strides[next];
            span = strides[next] * size[next];
        }
    }
    return size[0] && size[1] && size[2] ? (size_t)reach : 0;
}

static int32_t draw_source_dtype(struct random *random) {
    static const int32_t dtypes[] = {RAPT_F32, RAPT_F32, RAPT_F16, RAPT_BF16};
    return dtypes[random_below(random, 4)];
}

static int32_t draw_cache_dtype(struct random *random, int64_t dim) {
    for (;;) {
        const int format = (int)random_below(random, RAPT_FORMAT_COUNT);
        if (stored_is_key_value(format) && dim % rapt_format_info(format)->elements == 0)
            return stored_dtype(format);
    }
}

/* Any scale: occasionally 0, infinite, NaN, negative or tiny. */
static float draw_scale(struct random *random) {
    return random_chance(random, 10) ? random_special(random) : ldexpf(random_uniform(random) + 1.5f, -5);
}

/* Memory of scales or zero points: given, or to be written. */
static void draw_scale_memory(struct drawn *drawn, struct random *random, int side, int which, size_t bytes,
                              bool computes) {
    struct guarded *into = &drawn->scales[side][which], *expected = &drawn->expected_scales[side][which];
    *into = guarded_new(bytes, random_chance(random, 50) ? GUARD_END : GUARD_BEGIN, 0, UNWRITTEN);
    *expected = guarded_new(bytes, GUARD_END, 0, UNWRITTEN);
    drawn->writes_scales[side] = computes;
    if (computes)
        return;
    for (size_t i = 0; i < bytes / (which == 0 ? 4 : 1); i++) {
        const float scale = draw_scale(random);
        if (which == 0)
            memcpy(into->data + 4 * i, &scale, sizeof scale);
        else
            into->data[i] = (char)random_bits(random);
    }
    memcpy(expected->data, into->data, bytes);
    guarded_make_read_only(into);
}

/* Computed scales per row and group; or given ones, perhaps shared by all tokens or heads. */
static void draw_scales(struct drawn *drawn, struct random *random, int side, const int64_t size[3], int64_t dim) {
    rapt_append_desc *d = &drawn->desc;
    rapt_tensor *into = side ? &d->value_cache : &d->key_cache;
    const int uses = rapt_format_info(rapt_format_of(into->dtype))->uses;
    const bool computes = random_chance(random, 50);
    int64_t strides[3];
    if (!(uses & RAPT_MAY_SCALE) || (!(uses & RAPT_MUST_SCALE) && random_chance(random, 30)))
        return;
    into->scale_dtype = RAPT_F32;
    into->scale_group = 16 * random_below(random, 5);
    const int64_t group = into->scale_group ? into->scale_group : dim, groups = (dim + group - 1) / group;
    const size_t bytes = draw_strides(random, RAPT_F32, size, groups, strides);
    for (int i = 0; i < 3; i++)
        strides[i] = computes || random_chance(random, 50) ? strides[i] : 0;
    into->scale_batch_stride_bytes = strides[0];
    into->scale_head_stride_bytes = strides[1], into->scale_token_stride_bytes = strides[2];
    draw_scale_memory(drawn, random, side, 0, bytes, computes);
    into->scales = drawn->scales[side][0].data;
    if (uses & RAPT_MAY_SHIFT && random_chance(random, 50)) {
        into->zero_point_dtype = RAPT_I8;
        draw_scale_memory(drawn, random, side, 1, bytes / 4, computes);
        into->zero_points = drawn->scales[side][1].data;
    }
    if (computes)
        d->features |= side ? RAPT_COMPUTE_VALUE_SCALES : RAPT_COMPUTE_KEY_SCALES;
}

static void draw_side(struct drawn *drawn, struct random *random, int side, int64_t dim) {
    rapt_append_desc *d = &drawn->desc;
    rapt_tensor *from = side ? &d->value : &d->key, *into = side ? &d->value_cache : &d->key_cache;
    const bool paged = d->slots.data || d->pages.page_tokens, packed = d->offsets.data;
    const int64_t from_size[3] = {packed ? 1 : d->batch, d->kv_heads, packed ? d->tokens : d->length};
    const int64_t into_size[3] = {paged || d->pages.kind ? d->pages.pages : d->batch, d->kv_heads,
                                  paged ? d->pages.page_tokens : d->cache_length};
    const enum guard_side guard = random_chance(random, 50) ? GUARD_END : GUARD_BEGIN;
    const int format = rapt_format_of(from->dtype = draw_source_dtype(random));
    int64_t strides[3];
    size_t bytes = draw_strides(random, from->dtype, from_size, dim, strides);
    from->batch_stride_bytes = strides[0], from->head_stride_bytes = strides[1], from->token_stride_bytes = strides[2];
    drawn->from[side] = guarded_new(bytes, guard, 0, 0);
    const int64_t element = rapt_format_info(format)->bytes;
    stored_draw(random, format, drawn->from[side].data, (int64_t)bytes / element, random_chance(random, 20));
    guarded_make_read_only(&drawn->from[side]);
    from->data = drawn->from[side].data;
    from->extent_bytes = (int64_t)bytes;

    into->dtype = draw_cache_dtype(random, dim);
    bytes = draw_strides(random, into->dtype, into_size, dim, strides);
    *(paged ? &into->page_stride_bytes : &into->batch_stride_bytes) = strides[0];
    into->head_stride_bytes = strides[1], into->token_stride_bytes = strides[2];
    drawn->into[side] = guarded_new(bytes, guard, 0, UNWRITTEN);
    drawn->expected[side] = guarded_new(bytes, guard, 0, UNWRITTEN);
    into->data = drawn->into[side].data;
    into->extent_bytes = (int64_t)bytes;
    draw_scales(drawn, random, side, into_size, dim);
}

/* ---------------------------------------------------------------- lists */

static rapt_index_list list_of(struct drawn *drawn, struct random *random, int which, int64_t count) {
    static bool narrow_used;
    narrow_used = which == 0 ? false : narrow_used;
    if (narrow_used || random_chance(random, 60))
        return rapt_int64_list(drawn->lists[which], count);
    narrow_used = true;
    for (int64_t i = 0; i < count; i++)
        drawn->narrow[i] = (int32_t)drawn->lists[which][i];
    return rapt_int32_list(drawn->narrow, count);
}

/* Sequences of different lengths, or packed. */
static void draw_lengths(struct drawn *drawn, struct random *random) {
    rapt_append_desc *d = &drawn->desc;
    const int way = (int)random_below(random, 3);
    int64_t *numbers = drawn->lists[0];
    for (int64_t b = 0; b < d->batch; b++) {
        const int64_t length = random_below(random, d->length + 1);
        numbers[b + (way == 2)] = way == 2 ? (b ? numbers[b] : (numbers[0] = 0)) + length : length;
    }
    if (way == 1)
        d->lengths = list_of(drawn, random, 0, d->batch);
    if (way == 2 && d->batch) {
        d->tokens = numbers[d->batch] + random_below(random, 3);
        d->offsets = list_of(drawn, random, 0, d->batch + 1);
    }
}

static int64_t tokens_of(const rapt_append_desc *d) { return d->offsets.data ? d->tokens : d->batch * d->length; }

static void draw_slots(struct drawn *drawn, struct random *random) {
    rapt_append_desc *d = &drawn->desc;
    static const int64_t sizes[] = {1, 3, 16, 100};
    d->pages.page_tokens = sizes[random_below(random, 4)];
    d->pages.pages = tokens_of(d) * 2 / d->pages.page_tokens + 1;
    const int64_t slots = d->pages.pages * d->pages.page_tokens;
    const bool crowded = random_chance(random, 30);
    for (int64_t i = 0; i < tokens_of(d); i++)
        drawn->lists[2][i] = random_chance(random, 10) ? -1 - random_below(random, 3)
                                                       : random_below(random, crowded ? slots / 8 + 1 : slots);
    d->slots = list_of(drawn, random, 2, tokens_of(d));
}

/* A table for the positions; pages in any order, some shared by two sequences. */
static void draw_table(struct drawn *drawn, struct random *random) {
    rapt_append_desc *d = &drawn->desc;
    rapt_page_table *table = &d->pages;
    static const int64_t sizes[] = {1, 3, 16, 100};
    int64_t *entries = drawn->lists[4], *offsets = drawn->lists[5];
    table->kind = (int32_t)random_between(random, RAPT_PAGES_DENSE, RAPT_PAGES_ROW);
    const bool rows = table->kind == RAPT_PAGES_ROW;
    table->page_tokens = rows ? 0 : sizes[random_below(random, 4)];
    const int64_t each = rows ? 1 : d->cache_length / table->page_tokens + 1;
    table->pages = d->batch * each + 1;
    for (int64_t i = 0; i < d->batch * each; i++)
        entries[i] = random_below(random, table->pages);
    for (int64_t b = 0; b <= d->batch; b++)
        offsets[b] = b * each;
    table->entries = rapt_int64_list(entries, table->kind == RAPT_PAGES_DENSE ? each : d->batch * each);
    table->batch_stride_bytes = table->kind == RAPT_PAGES_DENSE ? each * 8 : 0;
    if (table->kind == RAPT_PAGES_LISTED)
        table->offsets = rapt_int64_list(offsets, d->batch + 1);
    if (!rows)
        d->cache_length = 0;
}

static void draw_positions(struct drawn *drawn, struct random *random) {
    rapt_append_desc *d = &drawn->desc;
    d->cache_length = d->length + random_below(random, 20);
    for (int64_t b = 0; b < d->batch; b++)
        drawn->lists[1][b] = random_below(random, d->cache_length - d->length + 1);
    d->positions = list_of(drawn, random, 1, d->batch);
    if (d->batch && (d->batch * (d->cache_length + 1) < DRAWN_MOST_TOKENS) && random_chance(random, 50))
        draw_table(drawn, random);
}

/* ---------------------------------------------------------------- rotary */

static void draw_scaling(rapt_rotary *rotary, struct random *random) {
    static const double bases[] = {10000, 500000, 1e6, 1.5};
    rotary->scaling = (int32_t)random_below(random, RAPT_ROTARY_LLAMA3 + 1);
    rotary->base = bases[random_below(random, 4)];
    if (rotary->scaling != RAPT_ROTARY_UNSCALED)
        rotary->factor = 1 + (double)random_below(random, 32) / 2;
    if (rotary->scaling == RAPT_ROTARY_YARN || rotary->scaling == RAPT_ROTARY_LLAMA3) {
        rotary->original_length = (double)(512 << random_below(random, 6));
        rotary->low_factor = random_chance(random, 50) ? 2 : 0;
        rotary->high_factor = random_chance(random, 50) ? 8 : 0;
    }
    rotary->attention_factor = random_chance(random, 30) ? 1.25 : 0;
}

void drawn_rotary(struct drawn *drawn, struct random *random, int64_t head_dim, int64_t positions) {
    rapt_rotary *rotary = &drawn->desc.rotary;
    rotary->pairing = (int32_t)random_between(random, RAPT_ROTARY_HALVES, RAPT_ROTARY_INTERLEAVED);
    rotary->dim = head_dim % 2 || random_chance(random, 50) ? 2 * random_between(random, 1, head_dim / 2) : 0;
    const int64_t pairs = (rotary->dim ? rotary->dim : head_dim) / 2;
    const int way = (int)random_below(random, 4);
    if (way == 0) {
        rotary->table_positions = positions;
        rotary->table_stride_bytes = random_chance(random, 50) ? 0 : (pairs + 3) * 4;
        rotary->cosines = drawn->cosines = test_drawn(random, positions * (pairs + 3), random_uniform);
        rotary->sines = drawn->sines = test_drawn(random, positions * (pairs + 3), random_uniform);
    } else if (way == 1) {
        drawn->frequencies = test_floats(pairs);
        for (int64_t i = 0; i < pairs; i++)
            drawn->frequencies[i] = (random_uniform(random) + 1) / 2;
        rotary->frequencies = drawn->frequencies;
        rotary->attention_factor = random_chance(random, 30) ? 0.75 : 0;
    } else {
        draw_scaling(rotary, random);
    }
}

static void draw_rotary_positions(struct drawn *drawn, struct random *random, int64_t positions) {
    rapt_append_desc *d = &drawn->desc;
    for (int64_t i = 0; i < tokens_of(d); i++)
        drawn->lists[3][i] = d->rotary.cosines           ? random_below(random, positions)
                             : random_chance(random, 20) ? random_between(random, -(1 << 29), 1 << 29)
                                                         : random_below(random, 1 << 17);
    d->rotary_positions = list_of(drawn, random, 3, tokens_of(d));
}

/* ---------------------------------------------------------------- calls */

void drawn_append(struct drawn *drawn, struct random *random, bool large) {
    static const int64_t dims[] = {32, 64, 128, 1, 5, 80, 96, 160, 33, 256, 576, 1024};
    rapt_append_desc *d = &drawn->desc;
    drawn->desc = (rapt_append_desc)RAPT_APPEND_DESC_INIT;
    d->batch = large ? random_between(random, 1, DRAWN_MOST_BATCH) : random_below(random, 5);
    d->kv_heads = random_between(random, 1, large ? 4 : 3);
    d->length = large ? random_between(random, 100, 400) : random_below(random, 20);
    const int64_t choices = large ? 9 : sizeof dims / sizeof *dims; /* the longest in small calls only */
    d->head_dim = dims[random_below(random, choices)];
    d->value_dim = random_chance(random, 30) ? dims[random_below(random, choices)] : 0;
    draw_lengths(drawn, random);
    if (random_chance(random, 50))
        draw_slots(drawn, random);
    else
        draw_positions(drawn, random);
    for (int side = 0; side < 2; side++)
        draw_side(drawn, random, side, side && d->value_dim ? d->value_dim : d->head_dim);
    if (d->head_dim < 2 || random_chance(random, 40))
        return;
    const int64_t positions = d->length + 100;
    drawn_rotary(drawn, random, d->head_dim, positions);
    if (d->slots.data || random_chance(random, 40))
        draw_rotary_positions(drawn, random, positions);
}

void drawn_reset(struct drawn *drawn) {
    for (int side = 0; side < 2; side++) {
        memset(drawn->into[side].data, UNWRITTEN, drawn->into[side].bytes);
        for (int which = 0; which < 2 && drawn->writes_scales[side]; which++)
            if (drawn->scales[side][which].data)
                memset(drawn->scales[side][which].data, UNWRITTEN, drawn->scales[side][which].bytes);
    }
}

void drawn_expect(struct drawn *drawn) {
    rapt_append_desc desc = drawn->desc;
    desc.key_cache.data = drawn->expected[0].data;
    desc.value_cache.data = drawn->expected[1].data;
    for (int side = 0; side < 2; side++) {
        rapt_tensor *into = side ? &desc.value_cache : &desc.key_cache;
        into->scales = drawn->expected_scales[side][0].data;
        into->zero_points = drawn->expected_scales[side][1].data;
    }
    rapt_reference_append(&desc);
}

static bool is_same(const struct guarded *got, const struct guarded *expected) {
    return !got->data || (memcmp(got->data, expected->data, got->bytes) == 0 && guarded_is_clean(got));
}

bool drawn_is_right(const struct drawn *drawn) {
    for (int side = 0; side < 2; side++)
        if (!is_same(&drawn->into[side], &drawn->expected[side]) ||
            !is_same(&drawn->scales[side][0], &drawn->expected_scales[side][0]) ||
            !is_same(&drawn->scales[side][1], &drawn->expected_scales[side][1]))
            return false;
    return true;
}

void drawn_free(struct drawn *drawn) {
    for (int side = 0; side < 2; side++) {
        guarded_free(&drawn->from[side]);
        guarded_free(&drawn->into[side]);
        guarded_free(&drawn->expected[side]);
        for (int which = 0; which < 2; which++) {
            guarded_free(&drawn->scales[side][which]);
            guarded_free(&drawn->expected_scales[side][which]);
            drawn->scales[side][which] = drawn->expected_scales[side][which] = (struct guarded){0};
        }
        drawn->writes_scales[side] = false;
    }
    test_free_all();
}
