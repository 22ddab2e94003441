/* SPDX-License-Identifier: MIT
 * stage: stored rows to float32, element by element, with their scales, touching no byte beside them. */
#include "kernels/check.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/guarded.h"
#include "support/stored.h"

/* Rows that end, or begin, at a guard page. */
struct stage_case {
    int format, rows, dim;
    int64_t stride; /* blocks */
    enum guard_side side;
};

/* Whether less than the usual work is set. */
static bool is_sample(void) { return scaled_work(100) < 100; }

/* Any bytes: NaN, infinities and odd scales. */
static void fill(struct random *random, struct guarded *memory) {
    for (size_t at = 0; at < memory->bytes; at++)
        memory->data[at] = (char)random_bits(random);
}

/* 0 times infinity gives NaN, whose bits differ between processors. */
static bool is_same(float got, float expected) { return same_bits(got, expected, NAN_ANY); }

/* A number of stored bytes. */
static float number_of(int format, const void *row, int64_t d) {
    return rapt_reference_number(stored_dtype(format), row, d);
}

/* If the format has them: a scale per group of numbers, perhaps shared by rows, and sometimes a zero point. A group may
 * be longer than a row. */
static struct rapt_scales random_scales(struct random *random, const struct stage_case *c) {
    const int64_t group = random_below(random, 6) * 16, groups = group ? (c->dim - 1) / group + 1 : 1;
    const int64_t step = random_chance(random, 20) ? 0 : random_between(random, groups, groups + 2);
    const int64_t count = (c->rows - 1) * step + groups;
    if (!stored_may_scale(c->format) || random_chance(random, 20))
        return (struct rapt_scales){0};
    int8_t *zero_points = test_alloc((size_t)count);
    for (int64_t i = 0; i < count; i++)
        zero_points[i] = (int8_t)random_between(random, -128, 127);
    const bool shifts = rapt_format_info(c->format)->uses & RAPT_MAY_SHIFT && random_chance(random, 60);
    return (struct rapt_scales){.scales = test_drawn(random, count, quick_normal),
                                .zero_points = shifts ? zero_points : NULL,
                                .stride_bytes = step * (int64_t)sizeof(float),
                                .group = group};
}

static float scaled(const struct rapt_scales *scales, float number, int64_t row, int64_t d) {
    const int64_t at = row * (scales->stride_bytes / 4) + (scales->group ? d / scales->group : 0);
    const int zero_point = scales->zero_points ? scales->zero_points[at] : 0;
    return scales->scales ? (number - (float)zero_point) * scales->scales[at] : number;
}

static void expect_staged(const struct rapt_table *table, const struct stage_case *c,
                          const struct rapt_stage_args *args) {
    for (int row = 0; row < c->rows; row++)
        for (int d = 0; d < c->dim; d++) {
            const float number = number_of(c->format, args->from + row * args->from_stride_bytes, d);
            const float expected = scaled(&args->scales, number, row, d), got = args->into[row * c->dim + d];
            if (!is_same(got, expected))
                fail_msg("%s stage %s: %d rows of %d, stride %lld, groups of %d: row %d, d %d: got %08x, expected %08x",
                         table->name, stored_name(c->format), c->rows, c->dim, (long long)c->stride,
                         (int)args->scales.group, row, d, bits_of(got), bits_of(expected));
        }
}

static void check_one(const struct rapt_table *table, const struct stage_case *c, struct random *random) {
    const int64_t stride_bytes = c->stride * rapt_format_info(c->format)->bytes;
    const int64_t reach = (c->rows - 1) * (stride_bytes < 0 ? -stride_bytes : stride_bytes);
    struct guarded from = guarded_new((size_t)(reach + rapt_format_row_bytes(c->format, c->dim)), c->side, 0, 0);
    struct guarded into = guarded_new((size_t)c->rows * (size_t)c->dim * 4, c->side, 0, 0xff);
    fill(random, &from);
    guarded_make_read_only(&from);
    const char *first = from.data + (stride_bytes < 0 ? reach : 0);
    const struct rapt_stage_args args = {.into = (float *)(void *)into.data,
                                         .from = first,
                                         .from_stride_bytes = stride_bytes,
                                         .rows = c->rows,
                                         .dim = c->dim,
                                         .format = c->format,
                                         .streams = random_chance(random, 50),
                                         .scales = random_scales(random, c)};
    table->stage(&args);
    expect_staged(table, c, &args);
    assert_true(guarded_is_clean(&into));
    guarded_free(&from);
    guarded_free(&into);
    test_free_all();
}

/* Rows of random bytes, but one word of each block, at place 0 or 1 for scales, or any, has the next code. */
static void fill_codes(struct random *random, unsigned char *blocks, int64_t count, int format, int64_t first_code,
                       int place) {
    const struct rapt_format_info *info = rapt_format_info(format);
    const int word = info->alignment == 1 ? 1 : 2, places = info->bytes / word;
    for (int64_t i = 0; i < count; i++) {
        unsigned char *block = blocks + i * info->bytes;
        const uint16_t code = (uint16_t)(first_code + i);
        for (int byte = 0; byte < info->bytes; byte++)
            block[byte] = (unsigned char)random_bits(random);
        memcpy(block + word * (place < 2 && place < places ? place : (int)random_below(random, places)), &code,
               (size_t)word);
    }
}

/* All codes of a word, in rows of dim numbers; an eighth of a block's under emulation. */
static void check_codes(const struct rapt_table *table, int format, int dim, int place, struct random *random) {
    enum { ROWS = 256, CODES = 1 << 16 };
    const int64_t row_bytes = rapt_format_row_bytes(format, dim),
                  blocks = ROWS * dim / rapt_format_info(format)->elements;
    unsigned char *from = test_alloc((size_t)(ROWS * row_bytes));
    float *into = test_floats((int64_t)ROWS * dim);
    const struct rapt_stage_args args = {.into = into,
                                         .from = (const char *)from,
                                         .from_stride_bytes = row_bytes,
                                         .rows = ROWS,
                                         .dim = dim,
                                         .format = format};
    const int64_t step = is_sample() && rapt_format_info(format)->elements > 1 ? 8 * blocks : blocks;
    for (int64_t code = 0; code < CODES; code += step) {
        fill_codes(random, from, blocks, format, code, place);
        table->stage(&args);
        for (int64_t i = 0; i < (int64_t)ROWS * dim; i++) {
            const float expected = number_of(format, from + i / dim * row_bytes, i % dim);
            if (!is_same(into[i], expected))
                fail_msg("%s stage %s, dim %d: number %d of row %d: got %08x, expected %08x", table->name,
                         stored_name(format), dim, (int)(i % dim), (int)(i / dim), bits_of(into[i]),
                         bits_of(expected));
        }
    }
    test_free_all();
}

static void check_rows(const struct rapt_table *table, int format, int dim, struct random *random) {
    static const int row_counts[] = {1, 2, 9, 33};
    const int blocks = dim / rapt_format_info(format)->elements;
    for (int r = 0; r < 4; r++)
        for (int kind = 0; kind < STRIDE_KINDS; kind++)
            for (int side = GUARD_END; side <= GUARD_BEGIN; side++) {
                const int64_t stride = stride_of_kind(kind, blocks, rapt_format_info(format)->bytes);
                const struct stage_case c = {format, row_counts[r], dim, stride, (enum guard_side)side};
                if (!is_sample() || random_chance(random, 8))
                    check_one(table, &c, random);
            }
}

void check_stage(const struct rapt_table *table) {
    struct random random = {12};
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++) {
        if (!stored_is_key_value(format))
            continue;
        const int elements = rapt_format_info(format)->elements;
        for (int place = 0; place < (elements > 1 && !is_sample() ? 3 : 1); place++) {
            check_codes(table, format, elements, place, &random);
            check_codes(table, format, elements > 1 ? 3 * elements : 61, place, &random);
        }
        for (int d = 0; d < edge_dim_count; d++)
            if (elements == 1 || edge_dims[d] <= 5)
                check_rows(table, format, edge_dims[d] * elements, &random);
    }
}
