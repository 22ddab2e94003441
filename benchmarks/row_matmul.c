/* SPDX-License-Identifier: MIT
 *
 * Rows of matrix products. Weights of few rows lie in regions of the arena, a new one per run. */
#include "row_kinds.h"

#include "rapt/matmul.h"

#include <string.h>

struct product {
    rapt_matmul_desc desc; /* weights of region 0 */
    const char *base;
    size_t region_bytes, regions, *cursor; /* cursor NULL = one region */
    int threads;
    rapt_status status; /* of the last run */
};

static void product_run(void *context) {
    struct product *product = context;
    const rapt_run_options options = {.struct_size = sizeof options, .max_threads = product->threads};
    rapt_matmul_desc desc = product->desc;
    if (product->cursor) {
        desc.weight = (const float *)(const void *)(product->base + *product->cursor * product->region_bytes);
        *product->cursor = (*product->cursor + 1) % product->regions;
    }
    product->status = rapt_matmul(&desc, &options, NULL);
}

static struct product product_of(const struct row *row, const struct arena *arena, size_t *cursor, float *x,
                                 float *out) {
    const struct product_shape *shape = &row->product;
    const int64_t width = shape->layout == RAPT_WEIGHT_OUT_IN ? shape->inner : shape->columns;
    rapt_matmul_desc desc = RAPT_MATMUL_DESC_INIT;
    desc.weight_layout = shape->layout;
    desc.rows = shape->rows;
    desc.inner = shape->inner;
    desc.columns = shape->columns;
    desc.x = x;
    desc.x_stride_bytes = shape->inner * (int64_t)sizeof(float);
    desc.weight = (const float *)(const void *)arena->base;
    desc.weight_stride_bytes = width * (int64_t)sizeof(float);
    desc.out = out;
    desc.out_stride_bytes = shape->columns * (int64_t)sizeof(float);
    desc.isa = row->isa;
    const size_t bytes = (size_t)(shape->inner * shape->columns) * sizeof(float);
    return (struct product){desc, arena->base, bytes, arena_regions(arena, bytes), cursor, row->threads, RAPT_OK};
}

static void count_work(struct workload *work, const struct product_shape *shape) {
    const double rows = (double)shape->rows, inner = (double)shape->inner, columns = (double)shape->columns;
    memset(work, 0, sizeof *work);
    work->flops = 2 * rows * inner * columns;
    work->bytes = sizeof(float) * (rows * inner + inner * columns + rows * columns);
}

static void measure_product(const struct row *row, const struct row_settings *settings, struct row_run *run,
                            struct product *product, struct product *alone) {
    run->subject = (struct contender){.run = product_run, .context = product, .calls_per_round = 1};
    run->rival = (struct contender){.run = product_run, .context = alone, .calls_per_round = 1};
    fma_peak_init(&run->fma_peak, row->isa, row->threads);
    struct contender *contenders[4] = {&run->subject, &run->fma_peak.contender};
    int count = 2;
    if (row_is_from_memory(row)) {
        stream_peak_init(&run->stream_peak, settings->arena, product->region_bytes, product->cursor, row->threads);
        contenders[count++] = &run->stream_peak.contender;
    }
    if (row->rival != RIVAL_NONE)
        contenders[count++] = &run->rival;
    measure(contenders, count, settings->seconds, settings->min_rounds);
}

void row_matmul(struct bench_state *state, const struct row *row, const struct row_settings *settings,
                struct row_run *run) {
    const size_t x_bytes = (size_t)(row->product.rows * row->product.inner) * sizeof(float);
    float *x = buffer_new(x_bytes);
    float *out = buffer_new((size_t)(row->product.rows * row->product.columns) * sizeof(float));
    size_t cursor = 0;
    memcpy(x, settings->arena->base + settings->arena->bytes - x_bytes, x_bytes);
    struct product product = product_of(row, settings->arena, row_is_from_memory(row) ? &cursor : NULL, x, out);
    struct product alone = product;
    alone.threads = 1;
    count_work(&run->workload, &row->product);
    measure_product(row, settings, run, &product, &alone);
    report_rates(state, row, run);
    if (row->rival != RIVAL_NONE) {
        bench_counter(state, "speedup", run->rival.best_seconds / run->subject.best_seconds);
        bench_counter(state, "speedup_median", run->rival.median_seconds / run->subject.median_seconds);
    }
    report_remark(state, row, run, "");
    report_failure(state, product.status, alone.status);
    buffer_free(x);
    buffer_free(out);
}
