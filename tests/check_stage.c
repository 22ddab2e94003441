/* SPDX-License-Identifier: MIT
 * stage: stored rows to float32, element by element, and not one byte beside them. */
#include "check.h"
#include "cmocka_all.h"
#include "guarded.h"
#include "unit.h"

static const char *const names[] = {[RAPT_FORMAT_F32] = "f32", [RAPT_FORMAT_F16] = "f16"};
static const int32_t dtypes[] = {[RAPT_FORMAT_F32] = RAPT_F32, [RAPT_FORMAT_F16] = RAPT_F16};

/* Rows that end, or begin, at a page which cannot be touched. */
struct stage_case {
    int format, rows, dim;
    int64_t stride; /* elements */
    enum guard_side side;
};

static void fill(struct random *random, struct guarded *memory, int format) {
    const size_t bytes = (size_t)rapt_format_row_bytes(format, 1);
    for (size_t at = 0; at + bytes <= memory->bytes; at += bytes) {
        const float number = random_special(random);
        const uint16_t half = (uint16_t)random_bits(random);
        memcpy(memory->data + at, format == RAPT_FORMAT_F32 ? (const void *)&number : &half, bytes);
    }
}

static void expect_staged(const struct rapt_table *table, const struct stage_case *c, const char *first,
                          int64_t stride_bytes, const float *got) {
    for (int row = 0; row < c->rows; row++)
        for (int d = 0; d < c->dim; d++) {
            const float expected = unit_number(dtypes[c->format], first + row * stride_bytes, d);
            if (bits_of(got[row * c->dim + d]) != bits_of(expected))
                fail_msg("%s stage %s: %d rows of %d, stride %lld: row %d, d %d: got %08x, expected %08x", table->name,
                         names[c->format], c->rows, c->dim, (long long)c->stride, row, d,
                         bits_of(got[row * c->dim + d]), bits_of(expected));
        }
}

static void check_one(const struct rapt_table *table, const struct stage_case *c, struct random *random) {
    const int64_t element = rapt_format_row_bytes(c->format, 1), stride_bytes = c->stride * element;
    const int64_t reach = (c->rows - 1) * (stride_bytes < 0 ? -stride_bytes : stride_bytes);
    struct guarded from = guarded_new((size_t)(reach + c->dim * element), c->side, 0, 0);
    struct guarded into = guarded_new((size_t)c->rows * (size_t)c->dim * 4, c->side, 0, 0xff);
    fill(random, &from, c->format);
    guarded_make_read_only(&from);
    const char *first = from.data + (stride_bytes < 0 ? reach : 0);
    const struct rapt_stage_args args = {.into = (float *)(void *)into.data,
                                         .from = first,
                                         .from_stride_bytes = stride_bytes,
                                         .rows = c->rows,
                                         .dim = c->dim,
                                         .format = c->format,
                                         .streams = random_chance(random, 50)};
    table->stage(&args);
    expect_staged(table, c, first, stride_bytes, args.into);
    assert_true(guarded_is_clean(&into));
    guarded_free(&from);
    guarded_free(&into);
}

/* Each half there is, NaN made quiet as processors do. */
static void check_halves(const struct rapt_table *table) {
    enum { COUNT = 1 << 16 };
    for (int dim = 1; dim <= COUNT; dim *= 4) {
        uint16_t *halves = test_alloc(COUNT * sizeof *halves);
        float *numbers = test_floats(COUNT);
        for (int i = 0; i < COUNT; i++)
            halves[i] = (uint16_t)i;
        const struct rapt_stage_args args = {.into = numbers,
                                             .from = (const char *)halves,
                                             .from_stride_bytes = (int64_t)sizeof *halves * dim,
                                             .rows = COUNT / dim,
                                             .dim = dim,
                                             .format = RAPT_FORMAT_F16};
        table->stage(&args);
        for (int i = 0; i < COUNT; i++)
            if (bits_of(numbers[i]) != bits_of(unit_widen((uint16_t)i)))
                fail_msg("%s stage f16, dim %d: half %04x: got %08x, expected %08x", table->name, dim, (unsigned)i,
                         bits_of(numbers[i]), bits_of(unit_widen((uint16_t)i)));
        test_free_all();
    }
}

void check_stage(const struct rapt_table *table) {
    static const int row_counts[] = {1, 2, 9, 33};
    struct random random = {12};
    check_halves(table);
    for (int format = RAPT_FORMAT_F32; format <= RAPT_FORMAT_F16; format++)
        for (int d = 0; d < edge_dim_count; d++)
            for (int r = 0; r < 4; r++)
                for (int kind = 0; kind < STRIDE_KINDS; kind++)
                    for (int side = GUARD_END; side <= GUARD_BEGIN; side++) {
                        const int64_t strides[STRIDE_KINDS] = {edge_dims[d], edge_dims[d] + 3, -(edge_dims[d] + 1), 0};
                        const struct stage_case c = {format, row_counts[r], edge_dims[d], strides[kind],
                                                     (enum guard_side)side};
                        check_one(table, &c, &random);
                    }
}
