/* SPDX-License-Identifier: MIT
 * The vector operations that move values: loads and stores of every count at guard pages, bools, bits, squares. */
#include "kernels/vectors_check.h"

#include "support/cmocka_all.h"
#include "support/guarded.h"

static const uint32_t special_bits[SPECIALS] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00400000, 0x00800000, 0x80800000,
    0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc01234, 0x7f812345, 0x3f800000, 0xbf800000,
    0x3f800001, 0x3f7fffff, 0xbf7fffff, 0x3f000000, 0xbf000000, 0x3f000001, 0x3effffff, 0x3fc00000, 0xbfc00000,
    0x40200000, 0xc0200000, 0x4affffff, 0xcaffffff, 0x4b000000, 0xcb000000, 0x4b000001, 0x4b800001, 0x4f000000,
    0xcf000000, 0x5f000000, 0x39800000, 0x33800000, 0x00ffffff, 0x7e800000, 0x20000000, 0x1fffffff, 0x000000ff};

float special(int64_t number) { return float_of(special_bits[number % SPECIALS]); }

/* ---- memory */

static void expect_moved(const struct vector_table *table, const float *got, const float *expected, int count,
                         const char *what) {
    for (int i = 0; i < count; i++)
        if (bits_of(got[i]) != bits_of(expected[i]))
            fail_msg("%s: %s: element %d is %08x, expected %08x", table->name, what, i, bits_of(got[i]),
                     bits_of(expected[i]));
}

void test_constants(const struct vector_table *table) {
    float got[MOST_LANES], expected[MOST_LANES];
    for (int number = 0; number < SPECIALS; number++) {
        table->splat(special(number), got);
        for (int lane = 0; lane < table->lanes; lane++)
            expected[lane] = special(number);
        expect_moved(table, got, expected, table->lanes, "v_splat");
    }
    table->iota(got);
    for (int lane = 0; lane < table->lanes; lane++)
        expected[lane] = (float)lane;
    expect_moved(table, got, expected, table->lanes, "v_iota");
}

/* Some elements in guarded memory whose nearest byte is `distance` from the guard page. */
static struct guarded guarded_floats(const float *values, int count, enum guard_side side, size_t distance) {
    struct guarded memory = guarded_new((size_t)count * sizeof(float), side, distance, 0xff);
    memcpy(memory.data, values, memory.bytes);
    return memory;
}

static void check_loads(const struct vector_table *table, int n, enum guard_side side, size_t distance) {
    float values[MOST_LANES], got[MOST_LANES], expected[MOST_LANES] = {0};
    for (int lane = 0; lane < n; lane++)
        expected[lane] = values[lane] = special(7 * n + lane);
    struct guarded memory = guarded_floats(values, n, side, distance);
    guarded_make_read_only(&memory);
    const float *p = (const float *)(const void *)memory.data;
    table->load_n(p, n, got);
    expect_moved(table, got, expected, table->lanes, "v_load_n");
    if (n == table->lanes) {
        table->load(p, got);
        expect_moved(table, got, expected, table->lanes, "v_load");
    }
    guarded_free(&memory);
}

static void check_stores(const struct vector_table *table, int n, enum guard_side side, size_t distance) {
    float values[MOST_LANES], before[MOST_LANES];
    for (int lane = 0; lane < MOST_LANES; lane++) {
        values[lane] = special(5 * n + lane);
        before[lane] = float_of(0xdeadbeefu);
    }
    for (int is_whole = 0; is_whole <= (n == table->lanes); is_whole++) {
        struct guarded memory = guarded_floats(before, n, side, distance);
        if (is_whole)
            table->store((float *)(void *)memory.data, values);
        else
            table->store_n((float *)(void *)memory.data, values, n);
        expect_moved(table, (const float *)(const void *)memory.data, values, n, is_whole ? "v_store" : "v_store_n");
        if (!guarded_is_clean(&memory))
            fail_msg("%s: v_store_n of %d writes beside them", table->name, n);
        guarded_free(&memory);
    }
}

/* Stores leave writable memory after n elements as it was. */
static void check_rest(const struct vector_table *table, int n) {
    float memory[2 * MOST_LANES], values[MOST_LANES], expected[2 * MOST_LANES];
    for (int i = 0; i < 2 * MOST_LANES; i++)
        expected[i] = memory[i] = float_of(0xdeadbeefu);
    for (int lane = 0; lane < MOST_LANES; lane++)
        values[lane] = special(lane);
    memcpy(expected, values, (size_t)n * sizeof(float));
    table->store_n(memory, values, n);
    expect_moved(table, memory, expected, 2 * MOST_LANES, "v_store_n");
}

void test_parts(const struct vector_table *table) {
    static const size_t distances[] = {0, 4, 20, 60};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++)
        check_loads(table, 0, GUARD_END, distances[i]);
    for (int n = 1; n <= table->lanes; n++) {
        check_rest(table, n);
        for (int side = GUARD_END; side <= GUARD_BEGIN; side++)
            for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
                check_loads(table, n, (enum guard_side)side, distances[i]);
                check_stores(table, n, (enum guard_side)side, distances[i]);
            }
    }
}

/* ---- bools and bits */

static void check_bools(const struct vector_table *table, const uint8_t *p, int n) {
    float got[MOST_LANES], expected[MOST_LANES] = {0};
    uint32_t bits = 0;
    int any = 0;
    for (int i = 0; i < n; i++)
        bits |= (uint32_t)(p[i] != 0) << i;
    const uint32_t known = UINT32_MAX >> (32 - n);
    if ((table->load_bools(p, n) & known) != bits)
        fail_msg("%s: s_load_bools of %d: %08x, expected %08x", table->name, n, table->load_bools(p, n) & known, bits);
    if (n > table->lanes)
        return;
    for (int lane = 0; lane < n; lane++)
        any |= p[lane] != 0, expected[lane] = p[lane] != 0;
    table->load_bool(p, n, got);
    expect_moved(table, got, expected, table->lanes, "v_load_bool");
    if (n == table->lanes && (table->any(p) != 0) != any)
        fail_msg("%s: v_any is wrong for %08x", table->name, bits);
}

void test_bools(const struct vector_table *table) {
    static const uint8_t bytes[] = {0, 1, 0x80, 0xff, 0x7f, 2, 0x10};
    struct random random = {8};
    for (int n = 1; n <= MOST_BOOLS; n++)
        for (int number = 0; number < 4 * MOST_BOOLS; number++) {
            struct guarded memory = guarded_new((size_t)n, number % 2 ? GUARD_BEGIN : GUARD_END, 0, 0);
            uint8_t *p = (uint8_t *)memory.data;
            if (number < 2 * MOST_BOOLS) /* a single one */
                p[number / 2 % n] = bytes[1 + number % 6];
            else
                for (int i = 0; i < n; i++)
                    p[i] = random_chance(&random, 40) ? 0 : bytes[random_below(&random, 7)];
            guarded_make_read_only(&memory);
            check_bools(table, p, n);
            guarded_free(&memory);
        }
    for (int n = 1; n <= MOST_BOOLS; n++) /* all of one kind: v_any of nothing */
        for (int i = 0; i < 7; i++) {
            uint8_t same[MOST_BOOLS];
            memset(same, bytes[i], sizeof same);
            check_bools(table, same, n);
        }
}

void test_bits(const struct vector_table *table) {
    uint32_t words[MOST_LANES];
    float got[MOST_LANES], expected[MOST_LANES];
    struct random random = {9};
    for (int64_t number = 0; number < 200; number++)
        for (int bit = 0; bit < 32; bit++) {
            for (int lane = 0; lane < table->lanes; lane++) {
                words[lane] = number == 0 ? UINT32_C(1) << bit : number == 1 ? ~(UINT32_C(1) << bit)
                                                                             : (uint32_t)random_bits(&random);
                expected[lane] = (float)(words[lane] >> bit & 1);
            }
            table->test_bit(words, bit, got);
            expect_moved(table, got, expected, table->lanes, "v_test_bit");
        }
}

/* ---- stored numbers */

/* Bits of the value as float32; NaN keeps its fraction and becomes quiet. */
static uint32_t widened(uint16_t half) {
    const uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 0)
        return sign | bits_of((float)fraction * 0x1p-24f);
    if (exponent == 31)
        return sign | 0x7f800000u | fraction << 13 | (fraction ? 0x00400000u : 0);
    return sign | (exponent + 112) << 23 | fraction << 13;
}

static uint32_t f16_bits(const unsigned char *p) { return widened((uint16_t)(p[0] | p[1] << 8)); }
static uint32_t bf16_bits(const unsigned char *p) { return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24; }
static uint32_t int8_bits(const unsigned char *p) { return bits_of((float)(*p < 128 ? *p : *p - 256)); }

/* Every code of so many bytes in some lane, in memory that ends with the last; step: between lanes. */
static void check_codes(const struct vector_table *table, const char *name, void (*load)(const void *, float *),
                        int bytes, int step, uint32_t (*bits)(const unsigned char *)) {
    const int codes = 1 << 8 * bytes, lanes = step ? table->lanes : 1;
    struct guarded memory = guarded_new((size_t)(codes + lanes) * (size_t)bytes, GUARD_END, 0, 0);
    for (int i = 0; i < codes + lanes; i++)
        memcpy(memory.data + i * bytes, &(uint16_t){(uint16_t)i}, (size_t)bytes);
    guarded_make_read_only(&memory);
    for (int first = 0; first <= codes; first++) {
        const unsigned char *p = (const unsigned char *)memory.data + first * bytes;
        float got[MOST_LANES];
        load(p, got);
        for (int lane = 0; lane < table->lanes; lane++)
            if (bits_of(got[lane]) != bits(p + lane * step * bytes))
                fail_msg("%s: %s: lane %d: code %04x gives %08x, expected %08x", table->name, name, lane,
                         (unsigned)(first + lane * step), bits_of(got[lane]), bits(p + lane * step * bytes));
    }
    guarded_free(&memory);
}

/* Loads of storage types. */
void test_codes(const struct vector_table *table) {
#define CHECK_CODES(slot, bytes, step, bits) \
    check_codes(table, "v_" #slot, table->slot, bytes, step, bits)
    CHECK_CODES(load_f16, 2, 1, f16_bits);
    CHECK_CODES(splat_f16, 2, 0, f16_bits);
    CHECK_CODES(load_bf16, 2, 1, bf16_bits);
    CHECK_CODES(load_int8, 1, 1, int8_bits);
#undef CHECK_CODES
}

/* ---- squares */

/* Numbers of 16 bits, with twice as many columns: all elements differ; the last row ends at a guard page. */
static void check_shorts(const struct vector_table *table, int64_t offset, enum guard_side side) {
    struct guarded memory[MOST_LANES];
    const char *rows[MOST_LANES];
    const int lanes = table->lanes;
    float got[2 * MOST_LANES * MOST_LANES], expected[2 * MOST_LANES * MOST_LANES] = {0};
    for (int row = 0; row < lanes; row++) {
        memory[row] = guarded_new((size_t)lanes * 4, side, 0, 0);
        for (int column = 0; column < 2 * lanes; column++) {
            const uint16_t f16 = (uint16_t)(0x3c00 + 0x21 * row + 0x2d1 * column);
            memcpy(memory[row].data + column * 2, &f16, sizeof f16);
            expected[column * lanes + row] = float_of(widened(f16));
        }
        rows[row] = memory[row].data - offset * 2;
    }
    table->transpose_shorts(rows, offset * 2, got);
    expect_moved(table, got, expected, 2 * lanes * lanes, "v_transpose_shorts");
    table->transpose_shorts_by_quarters(rows, offset * 2, got);
    expect_moved(table, got, expected, 2 * lanes * lanes, "v_transpose_shorts_by_quarters");
    table->columns(rows, offset * 2, got);
    expect_moved(table, got, expected, 2 * lanes * lanes, "v_load_columns, v_widen_column");
    for (int row = 0; row < lanes; row++)
        guarded_free(&memory[row]);
}

/* Pairs of bfloat16: any bits. */
static void check_pairs(const struct vector_table *table) {
    float a[MOST_LANES], got[MOST_LANES], even[MOST_LANES], odd[MOST_LANES];
    struct random random = {10};
    for (int number = 0; number < 1000; number++) {
        for (int lane = 0; lane < table->lanes; lane++) {
            const uint32_t pair = (uint32_t)random_bits(&random);
            memcpy(&a[lane], &pair, sizeof pair);
            memcpy(&even[lane], &(uint32_t){pair << 16}, sizeof pair);
            memcpy(&odd[lane], &(uint32_t){pair >> 16 << 16}, sizeof pair);
        }
        table->even_bf16(a, got);
        expect_moved(table, got, even, table->lanes, "v_even_bf16");
        table->odd_bf16(a, got);
        expect_moved(table, got, odd, table->lanes, "v_odd_bf16");
    }
}

static void check_alternate_lanes(const struct vector_table *table) {
    float a[2 * MOST_LANES], got[2 * MOST_LANES], even[MOST_LANES], odd[MOST_LANES], turns[2 * MOST_LANES];
    for (int lane = 0; lane < 2 * table->lanes; lane++) {
        a[lane] = (float)(100 + lane);
        (lane % 2 ? odd : even)[lane / 2] = a[lane];
        turns[lane % table->lanes * 2 + lane / table->lanes] = a[lane];
    }
    table->evens(a, got);
    expect_moved(table, got, even, table->lanes, "v_evens");
    table->odds(a, got);
    expect_moved(table, got, odd, table->lanes, "v_odds");
    table->zipped(a, got);
    expect_moved(table, got, turns, 2 * table->lanes, "v_zip_low, v_zip_high");
}

/* All elements differ, some are NaN; the last row ends at a guard page. */
void test_squares(const struct vector_table *table) {
    static const int64_t offsets[] = {0, 1, 7, 16};
    const int lanes = table->lanes;
    float a[MOST_LANES * MOST_LANES] = {0}, expected[MOST_LANES * MOST_LANES] = {0};
    float got[MOST_LANES * MOST_LANES];
    for (int row = 0; row < lanes; row++)
        for (int column = 0; column < lanes; column++) {
            const uint32_t kind = row % 2 ? 0x7fa00000u : 0;
            a[row * lanes + column] = float_of(kind + 0x100u * (unsigned)row + (unsigned)column);
            expected[column * lanes + row] = a[row * lanes + column];
        }
    table->transpose(a, got);
    expect_moved(table, got, expected, lanes * lanes, "v_transpose");
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (int side = GUARD_END; side <= GUARD_BEGIN; side++) {
            struct guarded memory[MOST_LANES];
            const float *rows[MOST_LANES];
            for (int row = 0; row < lanes; row++) {
                memory[row] = guarded_floats(a + row * lanes, lanes, (enum guard_side)side, 0);
                rows[row] = (const float *)(const void *)memory[row].data - offsets[i];
            }
            table->load_square(rows, offsets[i], got);
            expect_moved(table, got, expected, lanes * lanes, "v_load_square");
            table->load_square_by_halves(rows, offsets[i], got);
            expect_moved(table, got, expected, lanes * lanes, "v_load_square_by_halves");
            for (int row = 0; row < lanes; row++)
                guarded_free(&memory[row]);
            check_shorts(table, offsets[i], (enum guard_side)side);
        }
    check_alternate_lanes(table);
    check_pairs(table);
}
