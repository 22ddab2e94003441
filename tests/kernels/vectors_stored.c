/* SPDX-License-Identifier: MIT
 * The vector operations on stored numbers of a byte or less: every code, and nothing read past the last one. */
#include <math.h>

#include "kernels/vectors_check.h"
#include "support/cmocka_all.h"
#include "support/guarded.h"

static const int8_t table_of_codes[2][16] = {
    {-128, 127, 0, -1, 5, 113, -104, 89, 1, -83, 2, 64, -64, 100, -100, 77},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
};

/* The number's bits; any NaN will do. */
static void expect_number(const struct vector_table *table, const char *name, int lane, float got, float expected) {
    if (isnan(expected) ? !isnan(got) : bits_of(got) != bits_of(expected))
        fail_msg("%s: %s: lane %d is %08x, expected %08x", table->name, name, lane, bits_of(got), bits_of(expected));
}

/* ---- float8 */

/* Sign, exponent of so many bits, fraction: IEEE's rule for finite numbers. */
static float small_float(unsigned code, int exponent_bits) {
    const int fraction_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (int)(code >> fraction_bits & ((1u << exponent_bits) - 1));
    const int fraction = (int)(code & ((1u << fraction_bits) - 1));
    const int units = fraction + (exponent ? 1 << fraction_bits : 0);
    const float magnitude = ldexpf((float)units, (exponent ? exponent : 1) - bias - fraction_bits);
    return code & 128 ? -magnitude : magnitude;
}

static float e4m3_number(unsigned code) { return (code & 127) == 127 ? NAN : small_float(code, 4); }

static float e5m2_number(unsigned code) {
    const float infinity = code & 128 ? -INFINITY : INFINITY;
    return (code & 127) > 124 ? NAN : (code & 127) == 124 ? infinity : small_float(code, 5);
}

static void check_float8(const struct vector_table *table, const char *name, void (*load)(const void *, float *),
                         float (*number)(unsigned), int lanes) {
    struct guarded memory = guarded_new(256 + (size_t)lanes, GUARD_END, 0, 0);
    float got[2 * MOST_LANES];
    for (size_t i = 0; i < memory.bytes; i++)
        memory.data[i] = (char)i;
    guarded_make_read_only(&memory);
    for (int first = 0; first <= 256; first++) {
        load(memory.data + first, got);
        for (int lane = 0; lane < lanes; lane++)
            expect_number(table, name, lane, got[lane], number((unsigned)(first + lane) % 256));
    }
    guarded_free(&memory);
}

void test_float8(const struct vector_table *table) {
    check_float8(table, "v_load_e4m3", table->load_e4m3, e4m3_number, table->lanes);
    check_float8(table, "v_load_e5m2", table->load_e5m2, e5m2_number, table->lanes);
    check_float8(table, "v_f16_of_e4m3", table->f16_of_e4m3, e4m3_number, 2 * table->lanes);
    check_float8(table, "v_f16_of_e5m2", table->f16_of_e5m2, e5m2_number, 2 * table->lanes);
}

/* ---- nibbles */

static void check_nibbles(const struct vector_table *table, const uint8_t *p, int shift, const int8_t *codes,
                          uint32_t bits) {
    float got[MOST_LANES];
    table->load_nibbles(p, shift, codes, got);
    for (int lane = 0; lane < table->lanes; lane++)
        expect_number(table, "v_load_nibbles", lane, got[lane], (float)codes[p[lane] >> shift & 15]);
    table->load_fives(p, shift, bits, got);
    for (int lane = 0; lane < table->lanes; lane++)
        expect_number(table, "v_load_fives", lane, got[lane],
                      (float)((p[lane] >> shift & 15) + (bits >> lane & 1 ? 16 : 0)));
}

/* Every byte in some lane, next to others; bits past the lanes are arbitrary. */
void test_nibbles(const struct vector_table *table) {
    struct random random = {11};
    struct guarded codes = guarded_new(16, GUARD_END, 0, 0), bytes = guarded_new(MOST_LANES, GUARD_END, 0, 0);
    uint8_t *p = (uint8_t *)bytes.data + MOST_LANES - table->lanes;
    for (int number = 0; number < 2 * 256; number++) {
        memcpy(codes.data, table_of_codes[number % 2], 16);
        for (int lane = 0; lane < table->lanes; lane++)
            p[lane] = (uint8_t)(number < 256 ? number + 37 * lane : random_below(&random, 256));
        const uint32_t bits = number < 32 ? UINT32_C(1) << number : (uint32_t)random_bits(&random);
        check_nibbles(table, p, 0, (const int8_t *)codes.data, bits);
        check_nibbles(table, p, 4, (const int8_t *)codes.data, bits);
    }
    guarded_free(&codes);
    guarded_free(&bytes);
}

/* ---- words */

/* Sixteen bytes of each row, ending at a guard page. */
static void check_words(const struct vector_table *table, struct random *random, enum guard_side side,
                        int64_t offset) {
    struct guarded memory[MOST_LANES];
    const char *rows[MOST_LANES];
    uint32_t got[4 * MOST_LANES], expected[4 * MOST_LANES] = {0};
    for (int row = 0; row < table->lanes; row++) {
        memory[row] = guarded_new(16, side, 0, 0);
        for (int c = 0; c < 4; c++) {
            expected[c * table->lanes + row] = (uint32_t)random_bits(random);
            memcpy(memory[row].data + 4 * c, &expected[c * table->lanes + row], 4);
        }
        rows[row] = memory[row].data - offset;
    }
    table->load_words(rows, offset, got);
    for (int i = 0; i < 4 * table->lanes; i++)
        if (got[i] != expected[i])
            fail_msg("%s: v_load_words: word %d, lane %d is %08x, expected %08x", table->name, i / table->lanes,
                     i % table->lanes, (unsigned)got[i], (unsigned)expected[i]);
    for (int row = 0; row < table->lanes; row++)
        guarded_free(&memory[row]);
}

/* One float16 number of each row, two bytes beside a guard page. */
static void check_f16_of_rows(const struct vector_table *table, enum guard_side side, int64_t offset) {
    struct guarded memory[MOST_LANES];
    const char *rows[MOST_LANES];
    float got[MOST_LANES];
    for (int row = 0; row < table->lanes; row++) {
        const uint16_t f16 = (uint16_t)(row % 2 ? 0x8001 + row : 0x3c00 + 0x155 * row);
        memory[row] = guarded_new(2, side, 0, 0);
        memcpy(memory[row].data, &f16, sizeof f16);
        rows[row] = memory[row].data - offset;
    }
    table->gather_f16(rows, offset, got);
    for (int row = 0; row < table->lanes; row++) {
        const float expected = row % 2 ? -(float)(1 + row) * 0x1p-24f : 1 + (float)(0x155 * row % 1024) / 1024;
        expect_number(table, "v_gather_f16", row, got[row],
                      row % 2 ? expected : ldexpf(expected, 0x155 * row / 1024));
        guarded_free(&memory[row]);
    }
}

static void check_parts_of_words(const struct vector_table *table, const uint32_t *words, const int8_t *codes) {
    float got[MOST_LANES];
    for (int k = 0; k < 4; k++) {
        table->byte_of(words, k, got);
        for (int lane = 0; lane < table->lanes; lane++) {
            const int byte = (int)(words[lane] >> 8 * k & 255);
            expect_number(table, "v_byte_of", lane, got[lane], (float)(byte < 128 ? byte : byte - 256) * 0x1p24f);
        }
    }
    for (int i = 0; i < 32; i += 4) {
        table->nibble_of(words, i, codes, got);
        for (int lane = 0; lane < table->lanes; lane++)
            expect_number(table, "v_nibble_of", lane, got[lane], (float)codes[words[lane] >> i & 15]);
    }
}

static uint8_t byte_of(const float *lanes, int lane, int k) {
    uint8_t bytes[4];
    memcpy(bytes, lanes + lane, sizeof bytes);
    return bytes[k];
}

static void check_bytes_of_words(const struct vector_table *table, const uint32_t *words, const uint32_t *bits,
                                 const int8_t *codes) {
    float got[MOST_LANES];
    for (int i = 0; i < 8; i += 4) {
        table->codes_of(words, i, codes, got);
        for (int at = 0; at < 4 * table->lanes; at++)
            expect_number(table, "v_codes_of", at, (int8_t)byte_of(got, at / 4, at % 4),
                          codes[words[at / 4] >> at % 4 * 8 >> i & 15]);
    }
    for (int i = 0; i < 32; i += 4) {
        table->raise_bytes(words, bits, i, got);
        for (int at = 0; at < 4 * table->lanes; at++) {
            const uint32_t more = (bits[at / 4] >> (i + at % 4) & 1) * 16;
            expect_number(table, "v_raise_bytes", at, byte_of(got, at / 4, at % 4),
                          (float)(((words[at / 4] >> at % 4 * 8) + more) & 255));
        }
    }
}

void test_words(const struct vector_table *table) {
    static const int64_t offsets[] = {0, 2, 18, 7};
    struct random random = {12};
    struct guarded codes = guarded_new(16, GUARD_END, 0, 0);
    uint32_t words[MOST_LANES], bits[MOST_LANES];
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (int side = GUARD_END; side <= GUARD_BEGIN; side++) {
            check_words(table, &random, (enum guard_side)side, offsets[i]);
            check_f16_of_rows(table, (enum guard_side)side, offsets[i]);
        }
    for (int number = 0; number < 600; number++) {
        memcpy(codes.data, table_of_codes[number % 2], 16);
        for (int lane = 0; lane < table->lanes; lane++) {
            words[lane] = number < 256 ? 0x01010101u * (uint32_t)((number + 37 * lane) % 256)
                                       : (uint32_t)random_bits(&random);
            bits[lane] = (uint32_t)random_bits(&random);
        }
        check_parts_of_words(table, words, (const int8_t *)codes.data);
        check_bytes_of_words(table, words, bits, (const int8_t *)codes.data);
    }
    guarded_free(&codes);
}
