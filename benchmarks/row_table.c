/* SPDX-License-Identifier: MIT */
#include "row_table.h"

#include "peaks.h"
#include "peer.h"

#include <stdio.h>

static const int64_t head_dims[] = {64, 128, 256};
static const int64_t lengths[] = {128, 2048, 8192};
static const int64_t groups[] = {1, 4, 8};

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

enum { DECODE_KEYS = 32768, DECODE_KV_HEADS = 8 };

struct table {
    struct row *rows;
    int count;
};

static struct row *append(struct table *table, enum row_kind kind, rapt_isa isa, int threads) {
    struct row *row = &table->rows[table->count++];
    *row = (struct row){.kind = kind, .isa = isa, .threads = threads};
    return row;
}

/* Heads that make a run of some milliseconds, and give two threads enough tasks. */
static int64_t prefill_heads(int64_t length) {
    return length <= 128 ? 32 : length <= 2048 ? 2 : 1;
}

static void add_prefill(struct table *table, rapt_isa isa, int threads, int64_t dim, int64_t length) {
    for (int causal = 0; causal < 2; causal++) {
        struct row *row = append(table, ROW_PREFILL, isa, threads);
        int64_t heads = prefill_heads(length);
        row->shape = (struct problem_shape){heads, heads, length, length, dim, causal != 0};
        snprintf(row->name, sizeof row->name, "prefill/f32/d%d/s%d/%s/isa:%s/t%d", (int)dim, (int)length,
                 causal ? "causal" : "full", rapt_isa_name(isa), threads);
    }
}

static void add_decode(struct table *table, rapt_isa isa, int threads, int64_t dim, int64_t group) {
    struct row *row = append(table, ROW_DECODE, isa, threads);
    row->shape = (struct problem_shape){DECODE_KV_HEADS * group, DECODE_KV_HEADS, 1, DECODE_KEYS, dim, false};
    snprintf(row->name, sizeof row->name, "decode/f32/d%d/kv%d/g%d/isa:%s/t%d", (int)dim, DECODE_KEYS,
             (int)group, rapt_isa_name(isa), threads);
}

static void add_peer(struct table *table, int64_t dim, int64_t length) {
    rapt_isa isa = RAPT_ISA_AUTO;
    if (!peer_describe() || rapt_isa_chosen(&isa) != RAPT_OK || !peak_known(isa))
        return;
    for (int causal = 0; causal < 2; causal++) {
        struct row *row = append(table, ROW_PEER, isa, 1);
        int64_t heads = prefill_heads(length);
        row->shape = (struct problem_shape){heads, heads, length, length, dim, causal != 0};
        snprintf(row->name, sizeof row->name, "peer:openblas/prefill/f32/d%d/s%d/%s/t1", (int)dim,
                 (int)length, causal ? "causal" : "full");
    }
}

static void add_isa(struct table *table, rapt_isa isa) {
    for (int d = 0; d < COUNT(head_dims); d++) {
        for (int s = 0; s < COUNT(lengths); s++)
            add_prefill(table, isa, 1, head_dims[d], lengths[s]);
        for (int g = 0; g < COUNT(groups); g++)
            add_decode(table, isa, 1, head_dims[d], groups[g]);
    }
    for (int threads = 2; threads <= peak_threads(); threads++) {
        add_prefill(table, isa, threads, 128, 2048);
        add_decode(table, isa, threads, 128, 1);
    }
}

static void add_peaks(struct table *table) {
    for (int threads = 1; threads <= peak_threads(); threads++) {
        for (int isa = RAPT_ISA_COUNT - 1; isa > RAPT_ISA_SCALAR; isa--)
            if (peak_known(isa) && rapt_isa_available(isa))
                snprintf(append(table, ROW_FMA_PEAK, isa, threads)->name, sizeof table->rows->name,
                         "peak/fma/f32/isa:%s/t%d", rapt_isa_name(isa), threads);
        snprintf(append(table, ROW_STREAM_PEAK, RAPT_ISA_AUTO, threads)->name, sizeof table->rows->name,
                 "peak/stream/t%d", threads);
    }
}

int row_table(struct row rows[ROW_MAX_COUNT]) {
    struct table table = {rows, 0};
    for (int isa = RAPT_ISA_COUNT - 1; isa > RAPT_ISA_SCALAR; isa--)
        if (peak_known(isa) && rapt_isa_available(isa))
            add_isa(&table, isa);
    for (int s = 0; s < COUNT(lengths); s++)
        add_peer(&table, 128, lengths[s]);
    add_peer(&table, 64, 2048);
    add_peer(&table, 256, 2048);
    add_peaks(&table); /* last: they sum up what was measured beside the rows */
    return table.count;
}
