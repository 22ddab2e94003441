/* SPDX-License-Identifier: MIT
 * Legal descriptors of rapt_append and rapt_rotate, for the one program that makes them illegal. */
#ifndef RAPT_TESTS_APPEND_LEGAL_H
#define RAPT_TESTS_APPEND_LEGAL_H

#include <string.h>

#include "rapt/cache.h"

enum { ROOM = 4096 };

static float key[ROOM], value[ROOM], key_cache[ROOM], value_cache[ROOM], out[ROOM], table[ROOM], scales[ROOM];
static signed char zero_points[ROOM];
static int64_t pages[8], page_offsets[8];
static int64_t positions[8], slots[8], lengths[8], offsets[8], rotary_positions[8];

/* 2 sequences, 2 heads, 3 tokens of 8; caches of 10. */
static inline rapt_append_desc fresh(void) {
    rapt_append_desc d = RAPT_APPEND_DESC_INIT;
    d.batch = 2, d.kv_heads = 2, d.length = 3, d.cache_length = 10, d.head_dim = 8;
    d.key = rapt_input_bshd(key, 2, 3, 2, 8);
    d.value = rapt_input_bshd(value, 2, 3, 2, 8);
    d.key_cache = rapt_output_bhsd(key_cache, 2, 2, 10, 8);
    d.value_cache = rapt_output_bhsd(value_cache, 2, 2, 10, 8);
    for (int i = 0; i < 8; i++) {
        positions[i] = 2;
        slots[i] = i;
        lengths[i] = 1;
        offsets[i] = i;
        rotary_positions[i] = 5;
    }
    d.positions = rapt_int64_list(positions, 2);
    memset(key_cache, 0xff, sizeof key_cache);
    memset(value_cache, 0xff, sizeof value_cache);
    memset(out, 0xff, sizeof out);
    memset(scales, 0xff, sizeof scales);
    memset(zero_points, 0xff, sizeof zero_points);
    return d;
}

static inline void with_slots(rapt_append_desc *d) {
    d->positions = (rapt_index_list){0};
    d->slots = rapt_int64_list(slots, 6);
    d->cache_length = 0;
    d->pages.page_tokens = 5, d->pages.pages = 4;
    rapt_tensor *const caches[] = {&d->key_cache, &d->value_cache};
    for (int i = 0; i < 2; i++) {
        *caches[i] = rapt_output_bhsd(i ? value_cache : key_cache, 4, 2, 5, 8);
        caches[i]->page_stride_bytes = caches[i]->batch_stride_bytes;
        caches[i]->batch_stride_bytes = 0;
    }
}

static inline void with_table(rapt_append_desc *d, rapt_page_kind kind) {
    with_slots(d);
    d->slots = (rapt_index_list){0};
    d->positions = rapt_int64_list(positions, 2);
    d->pages.kind = (int32_t)kind;
    for (int i = 0; i < 8; i++)
        pages[i] = i % 4, page_offsets[i] = i;
    d->pages.entries = rapt_int64_list(pages, kind == RAPT_PAGES_DENSE ? 2 : 4);
    d->pages.batch_stride_bytes = kind == RAPT_PAGES_DENSE ? 16 : 0;
    if (kind == RAPT_PAGES_LISTED)
        d->pages.offsets = rapt_int64_list(page_offsets, 3);
    if (kind == RAPT_PAGES_ROW) {
        d->pages.page_tokens = 0, d->cache_length = 5;
        d->key_cache = rapt_output_bhsd(key_cache, 4, 2, 5, 8);
        d->value_cache = rapt_output_bhsd(value_cache, 4, 2, 5, 8);
    }
}

/* int8 caches, each with 40 computed scales and zero points. */
static inline void with_scales(rapt_append_desc *d) {
    d->features = RAPT_COMPUTE_KEY_SCALES | RAPT_COMPUTE_VALUE_SCALES;
    for (int i = 0; i < 2; i++) {
        rapt_tensor *cache = i ? &d->value_cache : &d->key_cache;
        *cache = rapt_tensor_bhsd(i ? value_cache : key_cache, RAPT_I8, 2, 2, 10, 8);
        cache->scale_dtype = RAPT_F32, cache->zero_point_dtype = RAPT_I8, cache->scale_group = 16;
        cache->scales = scales + 40 * i, cache->zero_points = zero_points + 40 * i;
        cache->scale_token_stride_bytes = 4, cache->scale_head_stride_bytes = 40, cache->scale_batch_stride_bytes = 80;
    }
}

static inline void with_offsets(rapt_append_desc *d) {
    d->offsets = rapt_int64_list(offsets, 3);
    d->tokens = 4;
    d->key = rapt_input_bshd(key, 1, 4, 2, 8);
    d->value = rapt_input_bshd(value, 1, 4, 2, 8);
}

static inline void with_rotary(rapt_append_desc *d) {
    d->rotary.pairing = RAPT_ROTARY_HALVES;
    d->rotary.base = 10000;
}

static inline void with_scaling(rapt_append_desc *d, rapt_rotary_scaling scaling) {
    with_rotary(d);
    d->rotary.scaling = (int32_t)scaling;
    d->rotary.factor = 2;
    if (scaling == RAPT_ROTARY_YARN || scaling == RAPT_ROTARY_LLAMA3)
        d->rotary.original_length = 1024;
}

static inline void with_cosines(rapt_append_desc *d) {
    d->rotary.pairing = RAPT_ROTARY_INTERLEAVED;
    d->rotary.cosines = table;
    d->rotary.sines = table + 100;
    d->rotary.table_positions = 20;
}

static inline rapt_rotate_desc fresh_rotate(void) {
    fresh();
    rapt_rotate_desc d = RAPT_ROTATE_DESC_INIT;
    d.batch = 2, d.heads = 2, d.length = 2, d.head_dim = 8;
    d.in = rapt_input_bshd(key, 2, 2, 2, 8);
    d.out = rapt_output_bshd(out, 2, 2, 2, 8);
    d.positions = rapt_int64_list(rotary_positions, 4);
    d.rotary.pairing = RAPT_ROTARY_HALVES;
    d.rotary.base = 10000;
    return d;
}

/* First positions of sequences. */
static inline void with_first(rapt_rotate_desc *d) {
    d->positions = (rapt_index_list){0};
    d->first_positions = rapt_int64_list(positions, 2);
}

/* Sequences of 1 and 1 of 4 tokens. */
static inline void with_packed(rapt_rotate_desc *d) {
    d->offsets = rapt_int64_list(offsets, 3);
    d->tokens = 4;
    d->in = rapt_input_bshd(key, 1, 4, 2, 8);
    d->out = rapt_output_bshd(out, 1, 4, 2, 8);
}

#endif
