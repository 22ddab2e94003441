/* SPDX-License-Identifier: MIT */
#include "kernels/check.h"

#include <stdio.h>

#include "cpu.h"
#include "reference/reference.h"
#include "support/cmocka_all.h"
#include "support/stored.h"

const int edge_dims[] = {1,  2,  3,  7,  8,  9,  15,  16,  17,  24,  31,  32,  33,  47,  48,  49,
                         63, 64, 65, 72, 80, 96, 100, 112, 127, 128, 129, 130, 192, 255, 256, 257};
const int edge_dim_count = (int)(sizeof edge_dims / sizeof *edge_dims);

struct tile tile_of(const struct rapt_table *table, int way) {
    const struct rapt_tile_kind *kind = &table->kinds[way];
    const int padding = way == RAPT_FEW ? 16 : 0; /* of rows of scores */
    return (struct tile){table, kind, kind->name, way == RAPT_WIDE, kind->rows, RAPT_BLOCK_KEYS + padding};
}

int edge_rows(const struct tile *tile, int rows[MAX_ROW_COUNTS]) {
    const int lanes = tile->table->kinds[RAPT_WIDE].row_group, most = tile->most_rows;
    const int candidates[] = {1,         2,        3,        5,    lanes - 1, lanes,
                              lanes + 1, most - 5, most - 1, most, most / 2,  2 * lanes, 3 * lanes - 1};
    int count = 0;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        bool is_listed = false;
        for (int j = 0; j < count; j++)
            is_listed |= rows[j] == candidates[i];
        if (candidates[i] >= 1 && candidates[i] <= most && !is_listed)
            rows[count++] = candidates[i];
    }
    return count;
}

int edge_key_ranges(const struct tile *tile, struct key_range ranges[MAX_KEY_RANGES]) {
    const int lanes = tile->table->kinds[RAPT_WIDE].row_group;
    const struct key_range candidates[] = {
        {0, 1},     {0, lanes - 1}, {0, lanes},         {0, lanes + 1},     {0, 7},  {0, 8},  {0, 9},
        {0, 33},    {0, 255},       {0, 256},           {1, 256},           {3, 4},  {5, 13}, {7, 100},
        {200, 256}, {255, 256},     {lanes, 2 * lanes}, {9, 9 + 2 * lanes}, {32, 97}};
    int count = 0;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i].end > candidates[i].begin)
            ranges[count++] = candidates[i];
    return count;
}

int64_t stride_of_kind(int kind, int64_t blocks, int64_t block_bytes) {
    enum { SET_BYTES = 4096 };
    const int64_t strides[STRIDE_KINDS] = {blocks, blocks + 3, -(blocks + 1), 0, SET_BYTES / block_bytes};
    return strides[kind];
}

struct strided strided_rows(struct random *random, int64_t rows, int dim, int kind,
                            float (*draw)(struct random *)) {
    const int64_t step = stride_of_kind(kind, dim, sizeof(float));
    const int64_t span = (rows > 0 ? rows - 1 : 0) * (step < 0 ? -step : step) + dim;
    float *memory = test_floats(span);
    float *first = step < 0 ? memory - (rows - 1) * step : memory;
    for (int64_t row = 0; row < rows; row++)
        for (int d = 0; d < dim; d++)
            first[row * step + d] = draw(random);
    return (struct strided){(const char *)first, step * (int64_t)sizeof(float)};
}

/* float32 for every other tile. */
static int random_format(struct random *random, const struct tile *tile, int dim) {
    int formats[RAPT_FORMAT_COUNT], count = 0;
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++)
        if ((tile->slots->formats >> format & 1) && dim % rapt_format_info(format)->elements == 0)
            formats[count++] = format;
    return random_chance(random, 50) ? RAPT_FORMAT_F32 : formats[random_below(random, count)];
}

/* None, one for all rows, or one per row. special: some so large or small that few products are exact, and often one
 * that overflows when multiplied by a type's unit. */
static struct rapt_scales random_scales(struct random *random, int64_t rows, bool special) {
    const int64_t step = random_between(random, 0, 3), count = (rows > 0 ? rows - 1 : 0) * step + 1;
    float *scales = test_floats(count);
    for (int64_t i = 0; i < count; i++)
        scales[i] = special && random_chance(random, 3) ? quick_special(random) : random_uniform(random);
    if (special && random_chance(random, 50))
        scales[random_below(random, count)] = 0x1p121f;
    return (struct rapt_scales){.scales = random_chance(random, 20) ? NULL : scales,
                                .stride_bytes = step * (int64_t)sizeof(float)};
}

static bool machine_has_vbmi, machine_splits_vectors, machine_loads_halves;

/* With VBMI, kernels use it in every other case; any machine may split vectors, or load their halves fast. */
static void draw_processor(struct random *random) {
    atomic_store(&rapt_has_vbmi, machine_has_vbmi && random_chance(random, 50));
    atomic_store(&rapt_splits_vectors, random_chance(random, 50));
    atomic_store(&rapt_loads_halves, random_chance(random, 75));
}

struct stored_rows stored_rows_of(struct random *random, int format, int64_t rows, int dim, int kind,
                                  float (*draw)(struct random *)) {
    draw_processor(random);
    const int64_t blocks = dim / rapt_format_info(format)->elements, bytes = rapt_format_info(format)->bytes;
    const int64_t step = stride_of_kind(kind, blocks, bytes);
    const int64_t span = (rows > 0 ? rows - 1 : 0) * (step < 0 ? -step : step) + blocks;
    struct stored_rows result = {.format = format};
    float *numbers = test_floats(rows * dim);
    if (format == RAPT_FORMAT_F32) {
        result.stored = strided_rows(random, rows, dim, kind, draw);
    } else {
        char *memory = test_alloc((size_t)(span * bytes));
        char *first = step < 0 ? memory - (rows - 1) * step * bytes : memory;
        for (int64_t row = 0; row < rows; row++)
            stored_draw(random, format, first + row * step * bytes, blocks, draw == quick_special);
        result.stored = (struct strided){first, step * bytes};
    }
    if (rapt_format_info(format)->uses & RAPT_MAY_SCALE)
        result.scales = random_scales(random, rows, draw == quick_special);
    for (int64_t row = 0; row < rows; row++)
        for (int d = 0; d < dim; d++) {
            const int64_t at = row * (result.scales.stride_bytes / (int64_t)sizeof(float));
            const float scale = result.scales.scales ? result.scales.scales[at] : 1;
            numbers[row * dim + d] = scale * rapt_reference_number(
                stored_dtype(format), result.stored.first + row * result.stored.stride_bytes, d);
        }
    result.numbers = numbers;
    return result;
}

struct stored_rows stored_rows(struct random *random, const struct tile *tile, int64_t rows, int dim, int kind,
                               float (*draw)(struct random *)) {
    return stored_rows_of(random, random_format(random, tile, dim), rows, dim, kind, draw);
}

const struct rapt_stored_run *random_runs(struct random *random, const struct tile *tile,
                                          const struct stored_rows *from, int64_t rows, int dim) {
    const int64_t most = random_chance(random, 50) ? 5 : 70, row_bytes = rapt_format_row_bytes(from->format, dim);
    const int64_t stride = from->stored.stride_bytes, size = stride < 0 ? -stride : stride;
    if (!tile->slots->takes_runs || rows == 0 || random_chance(random, 40))
        return NULL;
    struct rapt_stored_run *runs = test_alloc((size_t)(rows + 1) * sizeof *runs), *run = runs;
    for (int64_t done = 0; done < rows; done += run++->rows) {
        run->rows = random_between(random, 1, most < rows - done ? most : rows - done);
        char *memory = test_alloc((size_t)((run->rows - 1) * size + row_bytes));
        run->row = stride < 0 ? memory + (run->rows - 1) * size : memory;
        for (int64_t i = 0; i < run->rows; i++)
            memcpy(memory + (run->row - memory) + i * stride, from->stored.first + (done + i) * stride,
                   (size_t)row_bytes);
    }
    *run = (struct rapt_stored_run){runs->row, INT64_MAX};
    return runs;
}

void expect_scores(const struct tile *tile, const float *got, const float *expected, const float *before,
                   int rows, struct key_range range, const char *slot) {
    const bool takes_turns = tile->slots->score_beside != NULL; /* scores of another block follow the last row */
    for (int row = 0; row < rows + (takes_turns && rows < tile->most_rows); row++)
        for (int key = 0; key < RAPT_BLOCK_KEYS; key++) {
            int64_t at = score_at(tile, row, key);
            bool is_inside = row < rows && key >= range.begin && key < range.end;
            if (is_inside ? same_bits(got[at], expected[at], NAN_ANY)
                          : bits_of(got[at]) == bits_of(before[at]))
                continue;
            fail_msg("%s %s.%s: rows %d, keys [%d, %d): row %d key %d: got %a (%08x), %s %a (%08x)",
                     tile->table->name, tile->way, slot, rows, range.begin, range.end, row, key,
                     (double)got[at], bits_of(got[at]), is_inside ? "expected" : "overwrote",
                     (double)(is_inside ? expected : before)[at],
                     bits_of((is_inside ? expected : before)[at]));
        }
}

const struct rapt_visible_spans *random_ranges(struct random *random, int rows) {
    if (random_chance(random, 40))
        return NULL;
    struct rapt_visible_spans *ranges = test_alloc(sizeof *ranges);
    int step = (int)random_below(random, 8);
    int first = (int)random_between(random, -200, 100), end = first + (int)random_between(random, 0, 300);
    for (int row = 0; row < rows; row++) {
        ranges->first_key[row] = first < 0 ? 0 : first > RAPT_BLOCK_KEYS ? RAPT_BLOCK_KEYS : first;
        ranges->end_key[row] = end < 0 ? 0 : end > RAPT_BLOCK_KEYS ? RAPT_BLOCK_KEYS : end;
        first += (int)random_between(random, 0, step);
        end += (int)random_between(random, 0, step);
    }
    return ranges;
}

bool is_in_ranges(const struct rapt_visible_spans *ranges, int row, int key) {
    return !ranges || (key >= ranges->first_key[row] && key < ranges->end_key[row]);
}

typedef void check_function(const struct rapt_table *table);

struct check_case {
    check_function *check;
    const struct rapt_table *table;
};

static void run_case(void **state) {
    const struct check_case *check_case = *state;
    check_case->check(check_case->table);
    atomic_store(&rapt_has_vbmi, machine_has_vbmi);
    atomic_store(&rapt_splits_vectors, machine_splits_vectors);
    atomic_store(&rapt_loads_halves, machine_loads_halves);
    test_free_all();
}

/* The argument, if any, is a pattern of test names: "avx2 score". */
int main(int argument_count, char **arguments) {
    static const struct {
        const char *name;
        check_function *check;
    } families[] = {
#define RAPT_SLOT(name) {#name, check_##name},
#include "kernels/slots.def"
#undef RAPT_SLOT
    };
    enum { FAMILIES = sizeof families / sizeof *families, CASES = RAPT_ISA_COUNT * FAMILIES };
    static struct check_case cases[CASES];
    static char names[CASES][64];
    struct CMUnitTest tests[CASES];
    const struct rapt_table *tables[RAPT_ISA_COUNT];
    int count = 0, table_count = machine_tables(tables);
    machine_has_vbmi = atomic_load(&rapt_has_vbmi);
    machine_splits_vectors = atomic_load(&rapt_splits_vectors);
    machine_loads_halves = atomic_load(&rapt_loads_halves);
    for (int t = 0; t < table_count; t++)
        for (int f = 0; f < FAMILIES; f++, count++) {
            cases[count] = (struct check_case){families[f].check, tables[t]};
            snprintf(names[count], sizeof names[count], "%s %s", tables[t]->name, families[f].name);
            tests[count] = (struct CMUnitTest){names[count], run_case, NULL, NULL, &cases[count]};
        }
    if (argument_count > 1)
        cmocka_set_test_filter(arguments[1]);
    return _cmocka_run_group_tests("check", tests, (size_t)count, NULL, NULL);
}
