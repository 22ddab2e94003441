/* SPDX-License-Identifier: MIT */
#include "row_table.h"

#include "peaks.h"
#include "peer.h"

#include <stdio.h>

/* Rows run on the best instruction set with one thread, and where it says so, on the others and with more.
 * VERSUS: what they run in turns with, see enum row_rival. UNITS: first of all on those of the machine;
 * MATRIX: on matrix units; HALVES: on those that multiply float16. */
enum { ALONE = 0, OTHER_ISAS = 1, MORE_THREADS = 2, VERSUS_FULL = 4, VERSUS_HEADS = 8, UNITS = 16, MATRIX = 32,
       HALVES = 64 };

static const struct entry {
    const char *name;
    int how;
} entries[] = {
    /* clang-format off */
    /* Sizes. */
    {"prefill/f32/d128/s128/full", OTHER_ISAS | MORE_THREADS},
    {"prefill/f32/d128/s128/causal", OTHER_ISAS | MORE_THREADS},
    {"prefill/f32/d128/s2048/full", OTHER_ISAS | MORE_THREADS},
    {"prefill/f32/d128/s2048/causal", OTHER_ISAS | MORE_THREADS | VERSUS_FULL},
    {"prefill/f32/d64/s128/full", OTHER_ISAS},
    {"prefill/f32/d64/s128/causal", OTHER_ISAS},
    {"prefill/f32/d64/s2048/full", OTHER_ISAS},
    {"prefill/f32/d64/s2048/causal", OTHER_ISAS | VERSUS_FULL},
    {"prefill/f32/d80/s128/full", ALONE},
    {"prefill/f32/d80/s128/causal", ALONE},
    {"prefill/f32/d80/s2048/full", ALONE},
    {"prefill/f32/d80/s2048/causal", ALONE},
    {"prefill/f32/d96/s128/full", ALONE},
    {"prefill/f32/d96/s128/causal", ALONE},
    {"prefill/f32/d96/s2048/full", ALONE},
    {"prefill/f32/d96/s2048/causal", ALONE},
    {"prefill/f32/d256/s128/full", ALONE},
    {"prefill/f32/d256/s128/causal", ALONE},
    {"prefill/f32/d256/s2048/full", ALONE},
    {"prefill/f32/d256/s2048/causal", ALONE},
    {"prefill/f32/d128/s512/full", ALONE},
    {"prefill/f32/d128/s512/causal", ALONE},
    {"prefill/f32/d128/s8192/full", ALONE},
    {"prefill/f32/d128/s8192/causal", ALONE},
    {"prefill/f32/d128/s32768/full", ALONE},
    {"prefill/f32/d128/s32768/causal", ALONE},
    {"prefill/f32/d72/s2048/full", ALONE},
    {"prefill/f32/d100/s2048/full", ALONE},
    /* Layouts. */
    {"prefill/f32/d128/s4096/full/layout:bhsd/g1", ALONE},
    {"prefill/f32/d128/s4096/full/layout:bshd/g1", ALONE},
    {"prefill/f32/d128/s4096/full/layout:kv4k/g1", ALONE},
    {"prefill/f32/d128/s4096/full/layout:kv8k/g1", ALONE},
    {"prefill/f32/d128/s4096/full/layout:kv16k/g1", ALONE},
    {"prefill/f32/d128/s4096/full/layout:bhsd/g4", ALONE},
    {"prefill/f32/d128/s4096/full/layout:bshd/g4", ALONE},
    {"prefill/f32/d128/s4096/full/layout:kv4k/g4", ALONE},
    {"prefill/f32/d128/s4096/full/layout:kv8k/g4", ALONE},
    {"prefill/f32/d128/s4096/full/layout:kv16k/g4", ALONE},
    {"prefill/f32/d128/s2048/full/layout:bhsd/g1", ALONE},
    {"prefill/f32/d128/s2048/full/layout:bshd/g1", ALONE},
    {"prefill/f32/d128/s2048/full/layout:kv16k/g1", ALONE},
    /* Features. */
    {"prefill/f32/d128/s2048/window512", VERSUS_FULL},
    {"prefill/f32/d128/s2048/alibi", VERSUS_FULL},
    {"prefill/f32/d128/s2048/softcap", VERSUS_FULL},
    {"prefill/f32/d128/s2048/boolmask_ones", VERSUS_FULL},
    {"prefill/f32/d128/s2048/boolmask_random", VERSUS_FULL},
    {"prefill/f32/d128/s2048/boolmask_causal", VERSUS_FULL},
    {"prefill/f32/d128/s2048/bias", VERSUS_FULL},
    {"prefill/f32/d128/s2048/sinks", VERSUS_FULL},
    {"prefill/f32/d64/s2048/window512", VERSUS_FULL},
    {"prefill/f32/d64/s2048/alibi", VERSUS_FULL},
    {"prefill/f32/d64/s2048/softcap", VERSUS_FULL},
    {"prefill/f32/d64/s2048/boolmask_ones", VERSUS_FULL},
    {"prefill/f32/d64/s2048/boolmask_random", VERSUS_FULL},
    {"prefill/f32/d64/s2048/boolmask_causal", VERSUS_FULL},
    {"prefill/f32/d64/s2048/bias", VERSUS_FULL},
    {"prefill/f32/d64/s2048/sinks", VERSUS_FULL},
    {"prefill/f32/d128/s32768/window1024", ALONE},
    /* Few of many keys: topk has single ones, blocks64/select32 has 32 blocks of 64. */
    {"decode/f32/d128/kv131072/h1/g1/topk2048", VERSUS_FULL},
    {"decode/f32/d128/kv131072/h1/g4/topk2048", VERSUS_FULL},
    {"decode/f32/d128/kv131072/h1/g16/topk2048", VERSUS_FULL},
    {"decode/f32/d128/kv131072/h1/g64/topk2048", VERSUS_FULL},
    {"decode/f32/d128/kv131072/h1/g4/topk16384", VERSUS_FULL},
    {"decode/f32/d128/kv131072/h1/g1/blocks64/select32", VERSUS_FULL},
    {"decode/f32/d128/kv131072/h1/g4/blocks64/select32", VERSUS_FULL},
    {"decode/f32/d128/kv131072/h1/g16/blocks64/select32", VERSUS_FULL},
    {"prefill/f32/d128/s8192/blocks64/select32", VERSUS_FULL},
    {"prefill/f32/d128/s8192/blocks128/select16", VERSUS_FULL},
    /* Out of memory. */
    {"decode/f32/d128/kv32768/g1", OTHER_ISAS | MORE_THREADS},
    {"decode/f32/d128/kv32768/g4", OTHER_ISAS},
    {"decode/f32/d128/kv32768/g8", OTHER_ISAS},
    {"decode/f32/d128/kv32768/g16", ALONE},
    {"decode/f32/d64/kv32768/g1", ALONE},
    {"decode/f32/d64/kv32768/g4", ALONE},
    {"decode/f32/d256/kv32768/g1", ALONE},
    {"decode/f32/d256/kv32768/g4", ALONE},
    {"decode/f32/d128/kv131072/h1", MORE_THREADS},
    {"extend/f32/d128/q2/kv32768/g1", ALONE},
    {"extend/f32/d128/q4/kv32768/g1", ALONE},
    {"extend/f32/d128/q8/kv32768/g1", ALONE},
    {"extend/f32/d128/q16/kv32768/g1", ALONE},
    {"extend/f32/d128/q2/kv32768/g4", ALONE},
    {"extend/f32/d128/q4/kv32768/g4", ALONE},
    {"extend/f32/d128/q8/kv32768/g4", ALONE},
    {"extend/f32/d128/q16/kv32768/g4", ALONE},
    {"extend/f32/d128/q16/kv8192/g4", ALONE},
    {"many/f32/d128/n10000/kv64", VERSUS_HEADS},
    /* float16 keys and values. */
    {"prefill/f16/d128/s128/causal", OTHER_ISAS},
    {"prefill/f16/d128/s2048/full", OTHER_ISAS | MORE_THREADS},
    {"prefill/f16/d128/s2048/causal", OTHER_ISAS},
    {"prefill/f16/d64/s2048/full", ALONE},
    {"prefill/f16/d128/s4096/full/layout:kv16k/g4", ALONE},
    {"decode/f16/d128/kv32768/g1", OTHER_ISAS | MORE_THREADS},
    {"decode/f16/d128/kv32768/g4", OTHER_ISAS},
    {"decode/f16/d128/kv32768/g8", OTHER_ISAS},
    {"decode/f16/d64/kv32768/g4", ALONE},
    {"extend/f16/d128/q4/kv32768/g4", ALONE},
    /* The other types of runtimes. */
    {"prefill/bf16/d128/s2048/full", OTHER_ISAS | MORE_THREADS},
    {"prefill/bf16/d128/s2048/causal", ALONE},
    {"prefill/bf16/d128/s8192/full", ALONE},
    {"prefill/q8_0/d128/s2048/full", OTHER_ISAS | MORE_THREADS},
    {"prefill/q8_0/d128/s2048/causal", ALONE},
    {"prefill/q8_0/d128/s8192/full", ALONE},
    {"prefill/q4_0/d128/s2048/full", OTHER_ISAS | MORE_THREADS},
    {"prefill/q4_0/d128/s2048/causal", ALONE},
    {"prefill/q4_0/d128/s8192/full", ALONE},
    {"decode/f32/d128/kv32768/h8/g1/layout:bshd", OTHER_ISAS},
    {"decode/f32/d128/kv32768/h8/g4/layout:bshd", OTHER_ISAS},
    {"decode/f16/d128/kv32768/h8/g1/layout:bshd", OTHER_ISAS},
    {"decode/f16/d128/kv32768/h8/g4/layout:bshd", OTHER_ISAS},
    {"decode/bf16/d128/kv32768/g1", OTHER_ISAS | MORE_THREADS},
    {"decode/bf16/d128/kv32768/g4", OTHER_ISAS},
    {"decode/bf16/d128/kv32768/g8", OTHER_ISAS},
    {"decode/q8_0/d128/kv32768/g1", OTHER_ISAS | MORE_THREADS},
    {"decode/q8_0/d128/kv32768/g4", OTHER_ISAS},
    {"decode/q8_0/d128/kv32768/g8", OTHER_ISAS},
    {"decode/q4_0/d128/kv32768/g1", OTHER_ISAS | MORE_THREADS},
    {"decode/q4_0/d128/kv32768/g4", OTHER_ISAS},
    {"decode/q4_0/d128/kv32768/g8", OTHER_ISAS},
    {"decode/float8_e4m3/d128/kv32768/g1", OTHER_ISAS | MORE_THREADS},
    {"decode/float8_e4m3/d128/kv32768/g4", OTHER_ISAS},
    {"decode/float8_e5m2/d128/kv32768/g1", OTHER_ISAS | MORE_THREADS},
    {"decode/float8_e5m2/d128/kv32768/g4", OTHER_ISAS},
    {"decode/int8/d128/kv32768/g1", OTHER_ISAS | MORE_THREADS},
    {"decode/int8/d128/kv32768/g4", OTHER_ISAS},
    /* Order 2. */
    {"prefill/bf16/order2/d128/s512/full", UNITS},
    {"prefill/bf16/order2/d128/s512/causal", UNITS},
    {"prefill/bf16/order2/d128/s2048/full", UNITS | OTHER_ISAS},
    {"prefill/bf16/order2/d128/s2048/causal", UNITS | OTHER_ISAS},
    {"prefill/bf16/order2/d128/s8192/full", UNITS},
    {"prefill/bf16/order2/d128/s8192/causal", UNITS},
    {"prefill/bf16/order2/d64/s512/full", UNITS},
    {"prefill/bf16/order2/d64/s512/causal", UNITS},
    {"prefill/bf16/order2/d64/s2048/full", UNITS},
    {"prefill/bf16/order2/d64/s2048/causal", UNITS},
    {"prefill/bf16/order2/d64/s8192/full", UNITS},
    {"prefill/bf16/order2/d80/s2048/full", UNITS},
    {"prefill/bf16/order2/d80/s2048/causal", UNITS},
    {"prefill/bf16/order2/d256/s2048/full", UNITS},
    {"prefill/bf16/order2/d256/s2048/causal", UNITS},
    {"prefill/f16/order2/d128/s2048/full", HALVES | OTHER_ISAS},
    {"prefill/f16/order2/d128/s2048/causal", HALVES},
    {"decode/bf16/order2/d128/kv32768/g1", UNITS | OTHER_ISAS},
    {"decode/bf16/order2/d128/kv32768/g4", UNITS | OTHER_ISAS},
    {"decode/bf16/order2/d128/kv32768/g8", UNITS | OTHER_ISAS},
    {"decode/bf16/order2/d128/kv32768/g16", UNITS},
    {"decode/f16/order2/d128/kv32768/g1", ALONE},
    {"decode/f16/order2/d128/kv32768/g4", ALONE},
    {"extend/bf16/order2/d128/q16/kv8192/g4", UNITS},
    {"decode/bf16/order2/mla576/kv65536/h1/g8", UNITS},
    {"decode/bf16/order2/mla576/kv65536/h1/g16", UNITS},
    {"paged16/bf16/order2/d128/kv32768/g1", UNITS},
    {"paged16/bf16/order2/d128/kv32768/g4", UNITS},
    {"paged16/bf16/order2/d128/kv32768/g8", UNITS},
    {"paged128/bf16/order2/d128/kv32768/g4", UNITS},
    /* Order 3. */
    {"prefill/f32/order3/d128/s512/causal", MATRIX},
    {"prefill/f32/order3/d128/s2048/full", MATRIX | OTHER_ISAS},
    {"prefill/f32/order3/d128/s2048/causal", MATRIX},
    {"prefill/f32/order3/d128/s8192/full", MATRIX},
    {"prefill/f32/order3/d64/s2048/full", MATRIX},
    {"prefill/f32/order3/d64/s2048/causal", MATRIX},
    {"decode/f32/order3/d128/kv32768/g1", MATRIX},
    {"decode/f32/order3/d128/kv32768/g8", MATRIX},
    /* Pages in no order. */
    {"paged16/f32/d128/kv32768/g1", MORE_THREADS},
    {"paged16/f32/d128/kv32768/g4", MORE_THREADS},
    {"paged16/f16/d128/kv32768/g1", MORE_THREADS},
    {"paged16/f16/d128/kv32768/g4", MORE_THREADS},
    {"paged16/q8_0/d128/kv32768/g1", MORE_THREADS},
    {"paged16/q8_0/d128/kv32768/g4", MORE_THREADS},
    {"paged32/f32/d128/kv32768/g1", ALONE},
    {"paged32/f16/d128/kv32768/g1", ALONE},
    {"paged32/q8_0/d128/kv32768/g1", ALONE},
    {"paged64/f32/d128/kv32768/g1", ALONE},
    {"paged128/f32/d128/kv32768/g1", ALONE},
    {"paged128/f32/d128/kv32768/g4", ALONE},
    {"paged128/f16/d128/kv32768/g1", ALONE},
    {"paged128/f16/d128/kv32768/g4", ALONE},
    {"paged128/q8_0/d128/kv32768/g1", ALONE},
    {"paged128/q8_0/d128/kv32768/g4", ALONE},
    {"paged32/f32/d128/kv32768/h8/g1/layout:bshd", ALONE},
    {"paged32/f32/d128/kv32768/h8/g4/layout:bshd", ALONE},
    {"paged32/f16/d128/kv32768/h8/g1/layout:bshd", ALONE},
    {"paged32/f16/d128/kv32768/h8/g4/layout:bshd", ALONE},
    {"paged16/f32/d128/s2048/full", ALONE},
    {"paged16/f16/d128/s2048/full", MORE_THREADS},
    {"paged16/q8_0/d128/s2048/full", ALONE},
    {"paged128/f32/d128/s2048/full", ALONE},
    {"paged128/f16/d128/s2048/full", ALONE},
    {"paged128/q8_0/d128/s2048/full", ALONE},
    /* Latent attention: one KV head, whose values are the first numbers of its keys. */
    {"decode/f32/mla576/kv32768/h1/g16", ALONE},
    {"decode/bf16/mla576/kv65536/h1/g8", ALONE},
    {"decode/bf16/mla576/kv65536/h1/g16", OTHER_ISAS | MORE_THREADS},
    {"decode/bf16/mla576/kv65536/h1/g32", ALONE},
    {"decode/bf16/mla576/kv65536/h1/g128", ALONE},
    {"decode/f16/mla576/kv65536/h1/g16", ALONE},
    {"decode/q8_0/mla576/kv65536/h1/g16", ALONE},
    {"decode/bf16/mla320/kv65536/h1/g16", ALONE},
    {"decode/bf16/mla192/kv65536/h1/g16", ALONE},
    {"paged16/bf16/mla576/kv65536/h1/g16", ALONE},
    {"prefill/bf16/mla576/s2048/causal/h1/g16", ALONE},
    /* Matrix products; of few rows out of memory. */
    {"matmul/f32/m512k768n768", OTHER_ISAS | MORE_THREADS},
    {"matmul/f32/m512k768n768/in_out", MORE_THREADS},
    {"matmul/f32/m1024k768n2304", ALONE},
    {"matmul/f32/m512k1600n1600", ALONE},
    {"matmul/f32/m512k4096n4096", ALONE},
    {"matmul/f32/m64k768n768", ALONE},
    {"matmul/f32/m1k4096n4096", OTHER_ISAS | MORE_THREADS},
    {"matmul/f32/m1k4096n4096/in_out", OTHER_ISAS | MORE_THREADS},
    {"matmul/f32/m8k4096n4096", ALONE},
    {"matmul/f32/m8k4096n4096/in_out", ALONE},
    /* Caches that are filled, beside memcpy of as many bytes. */
    {"append/f32/d128/h8/n4096", ALONE},
    {"append/f16/d128/h8/n4096", ALONE},
    {"append/f16/d128/h8/n4096/rotary", OTHER_ISAS},
    {"append/f16/d128/h8/n4096/paged16", ALONE},
    {"append/f16/d128/h8/n4096/paged16/rotary", ALONE},
    {"append/bf16/d128/h8/n4096/paged16", ALONE},
    {"append/q8_0/d128/h8/n4096/paged16", OTHER_ISAS},
    {"append/q4_0/d128/h8/n4096/paged16", ALONE},
    {"append/q5_1/d128/h8/n4096/paged16", ALONE},
    {"append/iq4_nl/d128/h8/n4096/paged16", ALONE},
    {"append/e4m3/d128/h8/n4096/paged16", OTHER_ISAS},
    {"append/e5m2/d128/h8/n4096/paged16", ALONE},
    {"append/i8/d128/h8/n4096/paged16", OTHER_ISAS},
    /* Calls as they come. */
    {"ragged/f32/d128/causal", MORE_THREADS},
    {"tiny/f32/d64/s16", MORE_THREADS},
    /* Prefill and decode, or decodes of many lengths, in one call. */
    {"mixed/f32/d128/prefill1000x1/decode4096x31/g4", MORE_THREADS},
    {"mixed/f32/d128/prefill1000x1/decode32768x1/g4", MORE_THREADS},
    {"mixed/f32/d128/prefill1000x1/decode32768x1/g4/h1", MORE_THREADS},
    {"mixed/f32/d128/decode16to8192x255/g4/h2", MORE_THREADS},
    {"mixed/f16/d128/prefill1000x1/decode4096x31/g4", ALONE},
    {"mixed/bf16/d128/prefill1000x1/decode4096x31/g4", MORE_THREADS},
    {"mixed/q8_0/d128/prefill1000x1/decode4096x31/g4", MORE_THREADS},
    {"mixed/q4_0/d128/prefill1000x1/decode4096x31/g4", ALONE},
    {"mixed/f32/d128/prefill1000x1/decode4096x31/g4/paged16", MORE_THREADS},
    {"mixed/f16/d128/prefill1000x1/decode4096x31/g4/paged16", MORE_THREADS},
    {"mixed/q8_0/d128/prefill1000x1/decode4096x31/g4/paged16", MORE_THREADS},
    {"mixed/bf16/d128/decode16to8192x255/g4/h2", ALONE},
    {"mixed/q8_0/d128/decode16to8192x255/g4/h2", ALONE},
    /* Attention and its projections. */
    {"layer/gpt2-small/t1024/causal", MORE_THREADS},
    /* Peers. */
    {"peer:openblas/prefill/f32/d128/s128/full", ALONE},
    {"peer:openblas/prefill/f32/d128/s128/causal", ALONE},
    {"peer:openblas/prefill/f32/d128/s2048/full", ALONE},
    {"peer:openblas/prefill/f32/d128/s2048/causal", ALONE},
    {"peer:openblas/prefill/f32/d128/s8192/full", ALONE},
    {"peer:openblas/prefill/f32/d128/s8192/causal", ALONE},
    {"peer:openblas/prefill/f32/d64/s2048/full", ALONE},
    {"peer:openblas/prefill/f32/d64/s2048/causal", ALONE},
    {"peer:openblas/prefill/f32/d256/s2048/full", ALONE},
    {"peer:openblas/prefill/f32/d256/s2048/causal", ALONE},
    /* clang-format on */
};

struct table {
    struct row *rows;
    int count;
};

static struct row *append(struct table *table, rapt_isa isa, int threads) {
    struct row *row = &table->rows[table->count++];
    *row = (struct row){.isa = isa, .threads = threads};
    return row;
}

static void add_attention(struct table *table, const struct entry *entry, rapt_isa isa, int threads) {
    struct row *row = append(table, isa, threads);
    row_from_name(row, entry->name);
    row->rival = row->shape.page_tokens      ? RIVAL_CONTIGUOUS
                 : threads > 1               ? RIVAL_ONE_THREAD
                 : entry->how & VERSUS_FULL  ? RIVAL_FULL
                 : entry->how & VERSUS_HEADS ? RIVAL_HEADS
                                             : RIVAL_NONE;
    if (row->kind == ROW_PEER || row->kind == ROW_LAYER)
        snprintf(row->name, sizeof row->name, "%s/t%d", entry->name, threads);
    else
        snprintf(row->name, sizeof row->name, "%s/isa:%s/t%d", entry->name, rapt_isa_name(isa), threads);
    if ((row->kind == ROW_PEER && !peer_describe()) || (row->shape.kv_dtype && !workload_accepts(row->shape.kv_dtype)))
        table->count--;
}

rapt_isa row_peak_isa(const struct row *row) {
    return row->isa == RAPT_ISA_AMX && row->shape.numerics == RAPT_NUMERICS_ORDER_3 ? RAPT_ISA_AVX512 : row->isa;
}

static void add_peaks(struct table *table) {
    for (int threads = 1; threads; threads = peak_more_threads(threads)) {
        for (int isa = RAPT_ISA_COUNT - 1; isa > RAPT_ISA_SCALAR; isa--) {
            if (!peak_known(isa))
                continue;
            struct row *row = append(table, isa, threads);
            row->kind = ROW_FMA_PEAK;
            snprintf(row->name, sizeof row->name, "peak/fma/%s/isa:%s/t%d", peak_is_of_unit(isa) ? "bf16" : "f32",
                     rapt_isa_name(isa), threads);
        }
        struct row *row = append(table, RAPT_ISA_AUTO, threads);
        row->kind = ROW_STREAM_PEAK;
        snprintf(row->name, sizeof row->name, "peak/stream/t%d", threads);
    }
}

int row_table(struct row rows[ROW_MAX_COUNT]) {
    struct table table = {rows, 0};
    rapt_isa best = RAPT_ISA_COUNT - 1;
    while (best > RAPT_ISA_SCALAR && (peak_is_of_unit(best) || !peak_known(best)))
        best--;
    for (size_t i = 0; best > RAPT_ISA_SCALAR && i < sizeof entries / sizeof entries[0]; i++) {
        for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++) {
            const int how = isa == RAPT_ISA_AMX ? UNITS | MATRIX | (peak_unit_takes_f16() ? HALVES : 0) : UNITS;
            if ((entries[i].how & how) && peak_is_of_unit(isa) && peak_known(isa))
                add_attention(&table, &entries[i], isa, 1);
        }
        add_attention(&table, &entries[i], best, 1);
        if (entries[i].how & MORE_THREADS)
            for (int threads = peak_more_threads(1); threads; threads = peak_more_threads(threads))
                add_attention(&table, &entries[i], best, threads);
        if (entries[i].how & OTHER_ISAS)
            for (int isa = best - 1; isa > RAPT_ISA_SCALAR; isa--)
                if (peak_known(isa))
                    add_attention(&table, &entries[i], isa, 1);
    }
    add_peaks(&table); /* last: they sum up what was measured beside the rows */
    return table.count;
}
