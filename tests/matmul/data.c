/* SPDX-License-Identifier: MIT */
#include "matmul/matmul.h"

#include "support/cmocka_all.h"

/* Fills rows of `width` numbers; *stride_bytes is negative if the gap is odd. Returns row 0. */
static const float *draw_matrix(struct random *random, const struct product_case *c, int64_t rows, int64_t width,
                                int64_t *stride_bytes) {
    const int64_t step = width + c->gap;
    float *memory = test_floats(rows * step + 1);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < width; i++)
            memory[row * step + i] = c->draw(random);
    *stride_bytes = (c->gap % 2 ? -step : step) * (int64_t)sizeof(float);
    return c->gap % 2 && rows > 0 ? memory + (rows - 1) * step : memory;
}

struct product_data product_new(const struct product_case *c, struct random *random) {
    const rapt_matmul_desc none = RAPT_MATMUL_DESC_INIT;
    struct product_data data = {.desc = none};
    rapt_matmul_desc *d = &data.desc;
    const bool out_in = c->layout == RAPT_WEIGHT_OUT_IN;
    d->weight_layout = c->layout;
    d->rows = c->rows;
    d->inner = c->inner;
    d->columns = c->columns;
    d->x = draw_matrix(random, c, c->rows, c->inner, &d->x_stride_bytes);
    d->weight = draw_matrix(random, c, out_in ? c->columns : c->inner, out_in ? c->inner : c->columns,
                            &d->weight_stride_bytes);
    if (c->has_bias)
        d->bias = test_drawn(random, c->columns, c->draw);
    d->out_stride_bytes = (c->columns + c->gap) * (int64_t)sizeof(float);
    data.out_floats = c->rows * (c->columns + c->gap);
    product_out(&data);
    return data;
}

float *product_out(struct product_data *data) { return data->desc.out = test_floats(data->out_floats); }

void product_run(const rapt_matmul_desc *desc, const rapt_run_options *options) {
    rapt_message message = {""};
    rapt_status status = rapt_matmul(desc, options, &message);
    if (status != RAPT_OK)
        fail_msg("%s: %s", rapt_status_text(status), message.text);
}

void expect_product(const struct product_data *data, const float *expected, const char *what) {
    const rapt_matmul_desc *d = &data->desc;
    const int64_t step = d->out_stride_bytes / (int64_t)sizeof(float);
    for (int64_t i = 0; i < data->out_floats; i++)
        if (bits_of(d->out[i]) != bits_of(expected[i]))
            fail_msg("%s: %s, %lld x %lld x %lld, layout %d, bias %d: row %lld, column %lld%s: got %a (%08x), "
                     "expected %a (%08x)",
                     what, d->isa ? rapt_isa_name((rapt_isa)d->isa) : "auto", (long long)d->rows, (long long)d->inner,
                     (long long)d->columns, (int)d->weight_layout, d->bias != NULL, (long long)(i / step),
                     (long long)(i % step), i % step >= d->columns ? " (after the row)" : "", (double)d->out[i],
                     bits_of(d->out[i]), (double)expected[i], bits_of(expected[i]));
}
