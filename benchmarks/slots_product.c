/* SPDX-License-Identifier: MIT
 *
 * The slots of matrix products: one block of inner for a tile, all of inner for few rows; both layouts of weights. */
#include "slots.h"

enum { ROWS = 64, FEW_INNER = 1024, FEW_COLUMNS = 64 };

struct product {
    const struct rapt_product_kernels *kernels;
    int layout; /* rapt_weight_layout */
    int rows;
    float *panel, *x, *weight, *out;
};

static void run_pack(void *context) {
    struct product *product = context;
    const int width = product->layout == 0 ? RAPT_INNER_BLOCK : product->kernels->columns;
    product->kernels->pack[product->layout](product->panel, (const char *)product->weight,
                                            width * (int64_t)sizeof(float), product->kernels->columns,
                                            RAPT_INNER_BLOCK);
}

static void run_tile(void *context) {
    struct product *product = context;
    const struct rapt_product_args args = {.x = (const char *)product->x,
                                           .weight = (const char *)product->panel,
                                           .out = (char *)product->out,
                                           .x_stride_bytes = RAPT_INNER_BLOCK * sizeof(float),
                                           .out_stride_bytes = product->kernels->columns * (int64_t)sizeof(float),
                                           .rows = ROWS,
                                           .inner = RAPT_INNER_BLOCK,
                                           .columns = product->kernels->columns,
                                           .first = true};
    product->kernels->tile(&args);
}

static void run_few(void *context) {
    struct product *product = context;
    const int width = product->layout == 0 ? FEW_INNER : FEW_COLUMNS;
    const struct rapt_product_args args = {.x = (const char *)product->x,
                                           .weight = (const char *)product->weight,
                                           .out = (char *)product->out,
                                           .x_stride_bytes = FEW_INNER * sizeof(float),
                                           .weight_stride_bytes = width * (int64_t)sizeof(float),
                                           .out_stride_bytes = FEW_COLUMNS * sizeof(float),
                                           .rows = product->rows,
                                           .inner = FEW_INNER,
                                           .columns = FEW_COLUMNS,
                                           .first = true,
                                           .last = true};
    product->kernels->few[product->layout](&args);
}

void slots_product(struct slots *slots) {
    static const char *const layouts[] = {"out_in", "in_out"};
    struct product product = {.kernels = &slots->table->product};
    const int columns = product.kernels->columns;
    product.panel = slots_numbers((size_t)RAPT_INNER_BLOCK * (size_t)columns);
    product.x = slots_numbers(ROWS * FEW_INNER);
    product.weight = slots_numbers(FEW_INNER * RAPT_MAX_TILE_ROWS);
    product.out = slots_zeros(ROWS * RAPT_MAX_TILE_ROWS);
    for (product.layout = 0; product.layout < 2; product.layout++) {
        const struct slot_case what = {run_pack, &product, (double)RAPT_INNER_BLOCK * columns, 0};
        slots_measure(slots, &what, "product.pack %s columns %d", layouts[product.layout], columns);
    }
    const struct slot_case tile = {run_tile, &product, ROWS * columns, 2.0 * ROWS * columns * RAPT_INNER_BLOCK};
    slots_measure(slots, &tile, "product.tile rows %d columns %d", ROWS, columns);
    for (product.layout = 0; product.layout < 2; product.layout++)
        for (product.rows = 1; product.rows; product.rows = product.rows == 1 ? product.kernels->few_rows : 0) {
            const double numbers = product.rows * FEW_COLUMNS;
            const struct slot_case few = {run_few, &product, numbers, 2 * numbers * FEW_INNER};
            slots_measure(slots, &few, "product.few %s rows %d", layouts[product.layout], product.rows);
            if (product.kernels->few_rows == 1)
                break;
        }
    buffer_free(product.panel);
    buffer_free(product.x);
    buffer_free(product.weight);
    buffer_free(product.out);
}
