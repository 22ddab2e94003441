/* SPDX-License-Identifier: MIT
 * Helpers that all stages share. */
#ifndef RAPT_INTERNAL_H
#define RAPT_INTERNAL_H

#if defined(__FAST_MATH__) || defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "the numeric order needs IEEE arithmetic: build without fast-math flags"
#endif

#include <string.h>

#include "assume.h"
#include "kernels.h"
#include "rapt/rapt.h"

enum { RAPT_MAX_HEAD_DIM = 1024 };

/* Far larger than any cache; sums of positions and sizes stay well inside int64. */
#define RAPT_MAX_POSITION (INT64_C(1) << 48)

/* Whether all bytes are 0; bytes: a multiple of 8. Compilers turn constants up to 256 into wide loads. */
static inline bool rapt_is_zero(const void *data, size_t bytes) {
    uint64_t word, any = 0;
    for (size_t i = 0; i < bytes; i += sizeof word) {
        memcpy(&word, (const char *)data + i, sizeof word);
        any |= word;
    }
    return any == 0;
}

static inline int64_t rapt_larger(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t rapt_smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* x / by, rounded up. ASSUME x >= 0, by >= 1. Unsigned, because signed divisions are slower. */
static inline int64_t rapt_quotient_up(int64_t x, int64_t by) {
    const uint64_t n = (uint64_t)x, d = (uint64_t)by;
    RAPT_ASSUME(x >= 0 && by >= 1);
    return (int64_t)(n / d + (n % d != 0));
}

/* x, rounded up to a multiple of `to`. ASSUME likewise. */
static inline int64_t rapt_round_up(int64_t x, int64_t to) {
    const uint64_t n = (uint64_t)x, d = (uint64_t)to;
    RAPT_ASSUME(x >= 0 && to >= 1);
    return (int64_t)((n + d - 1) / d * d);
}

/* Sizes of a tensor's first and third dimensions. Packed sequences follow each other in batch 0. */
struct rapt_extent {
    int64_t batch, tokens;
};

static inline struct rapt_extent rapt_query_extent(const rapt_attention_desc *desc) {
    return desc->query_offsets.data ? (struct rapt_extent){1, desc->query_tokens}
                                    : (struct rapt_extent){desc->batch, desc->query_length};
}

static inline const rapt_page_table *rapt_pages_of(const rapt_attention_desc *desc, int side) {
    return side == RAPT_KEYS ? &desc->key_pages : &desc->value_pages;
}

/* Whether tokens lie in pages of page_tokens. RAPT_PAGES_ROW has whole rows. */
static inline bool rapt_is_paged(const rapt_page_table *table) {
    return table->kind == RAPT_PAGES_DENSE || table->kind == RAPT_PAGES_LISTED;
}

/* With a page table, the first dimension is pages or rows. */
static inline struct rapt_extent rapt_kv_extent(const rapt_attention_desc *desc, int side) {
    const rapt_page_table *table = rapt_pages_of(desc, side);
    if (table->kind != RAPT_PAGES_NONE)
        return (struct rapt_extent){table->pages, rapt_is_paged(table) ? table->page_tokens : desc->kv_length};
    return desc->kv_offsets.data ? (struct rapt_extent){1, desc->kv_tokens}
                                 : (struct rapt_extent){desc->batch, desc->kv_length};
}

/* Where a row of a tensor lies. */
static inline const char *rapt_row(const rapt_tensor *tensor, int64_t batch, int64_t head, int64_t token) {
    return (const char *)tensor->data + batch * tensor->batch_stride_bytes + head * tensor->head_stride_bytes +
           token * tensor->token_stride_bytes;
}

static inline bool rapt_no_rows(const rapt_attention_desc *desc) {
    return desc->batch == 0 || desc->query_length == 0 || rapt_query_extent(desc).tokens == 0;
}

/* A bound descriptor with rows has out or a state. */
static inline bool rapt_is_bound(const rapt_attention_desc *desc) {
    return desc->out.data || desc->final_state.data || rapt_no_rows(desc);
}

/* Entry i of a list, the caller's or completed; list.data is not NULL. Atomic, so that the compiler cannot read an
 * entry again after it was checked. */
static inline int64_t rapt_index_at(rapt_index_list list, int64_t i) {
    const char *entry = (const char *)list.data + i * (list.stride_bytes ? list.stride_bytes : list.index_bytes);
    return list.index_bytes == 4 ? __atomic_load_n((const int32_t *)(const void *)entry, __ATOMIC_RELAXED)
                                 : __atomic_load_n((const int64_t *)(const void *)entry, __ATOMIC_RELAXED);
}

#endif
