/* SPDX-License-Identifier: MIT
 * The matrix product: validate, dispatch, cut into tasks, run. A task is a
 * block of rows by a tile of columns; for few rows it is some columns. */
#include "rapt/matmul.h"

#include "checked.h"
#include "describe.h"
#include "dispatch.h"
#include "internal.h"
#include "refuse.h"
#include "schedule.h"
#include "validate/matmul.h"

enum {
    TASK_ROWS = 512,       /* at most; each task packs its weights, which more rows share */
    MIN_TASK_ROWS = 128,   /* at least, if there are more */
    ENOUGH_TASKS = 32,     /* with fewer, tasks take fewer rows */
    FEW_COLUMNS_OUT_IN = 128, /* columns of a task for few rows, and the least of them in the other layout */
    FEW_COLUMNS_IN_OUT = 512,
    SMALL_PRODUCT = 1 << 20 /* multiply-adds below which waking a thread costs more */
};

struct product {
    rapt_matmul_desc desc; /* strides of single rows are 0 */
    const struct rapt_table *table;
    bool few;
    int64_t task_rows, task_columns, column_tasks, tasks;
};

/* The part of out from row and column on, with the weights of its columns. */
static struct rapt_product_args args_of(const struct product *p, int64_t row, int64_t column) {
    const rapt_matmul_desc *d = &p->desc;
    const bool out_in = d->weight_layout == RAPT_WEIGHT_OUT_IN;
    struct rapt_product_args args = {.x_stride_bytes = d->x_stride_bytes,
                                     .weight_stride_bytes = d->weight_stride_bytes,
                                     .out_stride_bytes = d->out_stride_bytes,
                                     .inner = d->inner};
    args.rows = d->rows - row < p->task_rows ? d->rows - row : p->task_rows;
    args.columns = d->columns - column < p->task_columns ? d->columns - column : p->task_columns;
    args.x = (const char *)d->x + row * d->x_stride_bytes;
    args.weight = (const char *)d->weight + column * (out_in ? d->weight_stride_bytes : 4);
    args.out = (char *)d->out + row * d->out_stride_bytes + column * 4;
    args.bias = d->bias ? d->bias + column : NULL;
    return args;
}

/* The weights of the block after k, for the kernel to prefetch. */
static void set_errands(const struct product *p, const struct rapt_product_args *tile, int64_t k,
                        struct rapt_errands *errands) {
    const int64_t next = k + RAPT_INNER_BLOCK, left = p->desc.inner - next;
    const int inner = left < 0 ? 0 : left < RAPT_INNER_BLOCK ? (int)left : RAPT_INNER_BLOCK;
    const bool out_in = p->desc.weight_layout == RAPT_WEIGHT_OUT_IN;
    rapt_errands_clear(errands);
    if (inner == 0)
        return;
    rapt_errands_add(errands,
                     (struct rapt_errand){.base = tile->weight + next * (out_in ? 4 : tile->weight_stride_bytes),
                                          .row_stride_bytes = tile->weight_stride_bytes,
                                          .rows = out_in ? (int)tile->columns : inner,
                                          .heads = 1,
                                          .row_bytes = 4 * (out_in ? inner : (int)tile->columns)});
}

static __attribute__((noinline)) void run_tile(const struct product *p, const struct rapt_product_args *tile) {
    _Alignas(RAPT_VECTOR_BYTES) float panel[RAPT_INNER_BLOCK * RAPT_MAX_TILE_ROWS];
    const int64_t inner = p->desc.inner;
    struct rapt_product_args block = *tile;
    struct rapt_errands errands;
    block.errands = &errands;
    for (int64_t k = 0; k < inner; k += RAPT_INNER_BLOCK) {
        block.inner = inner - k < RAPT_INNER_BLOCK ? inner - k : RAPT_INNER_BLOCK;
        block.first = k == 0;
        block.last = k + block.inner == inner;
        block.x = tile->x + k * 4;
        block.weight = (const char *)panel;
        set_errands(p, tile, k, &errands);
        const int64_t step = p->desc.weight_layout == RAPT_WEIGHT_IN_OUT ? tile->weight_stride_bytes : 4;
        p->table->product.pack[p->desc.weight_layout](panel, tile->weight + k * step, tile->weight_stride_bytes,
                                                      (int)tile->columns, (int)block.inner);
        p->table->product.tile(&block);
    }
}

static void run_task(const void *argument, int64_t task) {
    const struct product *p = argument;
    const int64_t row = task / p->column_tasks * p->task_rows, column = task % p->column_tasks * p->task_columns;
    const struct rapt_product_args args = args_of(p, row, column);
    if (p->few)
        p->table->product.few[p->desc.weight_layout](&args);
    else
        run_tile(p, &args);
}

/* Strides of single rows may hold anything, but enter prefetches. */
static void clear_unused_strides(rapt_matmul_desc *d) {
    if (d->rows == 1)
        d->x_stride_bytes = d->out_stride_bytes = 0;
    if ((d->weight_layout == RAPT_WEIGHT_OUT_IN ? d->columns : d->inner) == 1)
        d->weight_stride_bytes = 0;
    if (d->inner > 0)
        return;
    d->weight_layout = RAPT_WEIGHT_OUT_IN; /* x and weight are not touched then */
    d->x = d->weight = d->out;
    d->x_stride_bytes = d->weight_stride_bytes = 0;
}

/* Up to so many rows, reading weights in place costs less than packing them. Rows of inner are transposed for every
 * group of few rows, which packing does once, so there it pays sooner. */
static int64_t few_rows(const struct product *p) {
    const int most = p->table->product.few_rows;
    return p->desc.weight_layout == RAPT_WEIGHT_OUT_IN ? (most + 1) / 2 : most;
}

static bool is_small(const rapt_matmul_desc *desc) {
    int64_t work;
    return rapt_mul_fits(desc->rows, desc->columns, &work) && rapt_mul_fits(work, desc->inner, &work) &&
           work < SMALL_PRODUCT;
}

/* For few rows. Memory delivers long pieces of a row of weights faster than short ones, so if columns are contiguous,
 * each worker gets one piece. */
static int64_t few_task_columns(const struct product *p, const rapt_run_options *options) {
    const int64_t columns = p->desc.columns;
    if (p->desc.weight_layout == RAPT_WEIGHT_OUT_IN)
        return FEW_COLUMNS_OUT_IN;
    int workers = rapt_schedule_workers(options, rapt_quotient_up(columns, FEW_COLUMNS_IN_OUT), is_small(&p->desc));
    return rapt_round_up(rapt_quotient_up(columns, workers), RAPT_VECTOR_BYTES / (int64_t)sizeof(float));
}

/* The cut changes no bit, so it may depend on the number of threads. */
static void cut(struct product *p, const rapt_matmul_desc *desc, const rapt_run_options *options) {
    p->desc = *desc;
    clear_unused_strides(&p->desc);
    p->few = desc->rows <= few_rows(p) || desc->inner == 0;
    p->task_rows = TASK_ROWS;
    p->task_columns = p->few ? few_task_columns(p, options) : p->table->product.columns;
    p->column_tasks = rapt_quotient_up(desc->columns, p->task_columns);
    while (p->task_rows > MIN_TASK_ROWS && rapt_quotient_up(desc->rows, p->task_rows) * p->column_tasks < ENOUGH_TASKS)
        p->task_rows /= 2;
    p->tasks = rapt_quotient_up(desc->rows, p->task_rows) * p->column_tasks;
}

rapt_status rapt_matmul(const rapt_matmul_desc *desc, const rapt_run_options *options, rapt_message *message) {
    rapt_run_options complete;
    struct product p;
    rapt_clear_message(message);
    rapt_status status = rapt_validate_matmul(desc, message);
    if (status == RAPT_OK)
        status = rapt_describe_options(options, &complete, message);
    if (status == RAPT_OK)
        status = rapt_dispatch((rapt_isa)desc->isa, &p.table, message);
    if (status != RAPT_OK)
        return status;
    if (desc->rows == 0 || desc->columns == 0)
        return RAPT_OK;
    cut(&p, desc, &complete);
    status = rapt_schedule_tasks(&complete, p.tasks, is_small(&p.desc), run_task, &p);
    return rapt_refuse_run(message, status);
}
