/* SPDX-License-Identifier: MIT */
#include "row_table.h"

#include "peaks.h"
#include "peer.h"

#include <stdio.h>

/* Rows run on the best instruction set with one thread, and if flagged, on the others and with more. VERSUS: their
 * rivals, see enum row_rival. UNITS: first on the machine's units; MATRIX: on matrix units; HALVES: on those that
 * multiply float16. */
enum { ALONE = 0, OTHER_ISAS = 1, MORE_THREADS = 2, VERSUS_FULL = 4, VERSUS_HEADS = 8, UNITS = 16, MATRIX = 32,
       HALVES = 64 };

static const struct entry {
    const char *name;
    int how;
} entries[] = {
#include "row_names.def"
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
    add_peaks(&table); /* last: they summarise measurements beside the rows */
    return table.count;
}
