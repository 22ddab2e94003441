/* SPDX-License-Identifier: MIT
 * float32 to the 16-bit types, against definitions that pick the nearer neighbour: every number of the type, every tie,
 * and the numbers next to them. */
#include <math.h>

#include "kernels/vectors_check.h"
#include "support/cmocka_all.h"
#include "support/guarded.h"

/* IEEE 754-2019, 4.3.1. The unit of a binary16 number with this exponent is 2^(exponent - 10), exact in double. */
static uint16_t nearest_half(float x) {
    const uint16_t sign = bits_of(x) >> 31 ? 0x8000 : 0;
    if (isnan(x))
        return sign | 0x7e00 | (uint16_t)(bits_of(x) >> 13 & 0x3ff);
    if (isinf(x))
        return sign | 0x7c00;
    int exponent;
    frexp((double)fabsf(x), &exponent);
    exponent = x == 0 || exponent - 1 < -14 ? -14 : exponent - 1;
    const double units = nearbyint(ldexp((double)fabsf(x), 10 - exponent)); /* at least 1024 if normal */
    const bool overflows = exponent > 15 || (exponent == 15 && units >= 2048);
    return sign | (uint16_t)(overflows ? 0x7c00 : units + (exponent + 14) * 1024);
}

/* The upper half of a float32, or the next one away from zero. */
static uint16_t nearest_bf16(float x) {
    const uint16_t below = (uint16_t)(bits_of(x) >> 16), rest = (uint16_t)bits_of(x);
    if (isnan(x))
        return below | 0x40;
    const bool up = rest > 0x8000 || (rest == 0x8000 && below % 2 == 1);
    return up ? (uint16_t)(below + 1) : below;
}

/* Numbers accumulate until a vector is full. */
struct rounding {
    const struct vector_table *table;
    int count;
    float numbers[MOST_LANES];
};

static void expect_nearest(const struct rounding *rounding, bool is_half) {
    const struct vector_table *table = rounding->table;
    uint16_t stored[MOST_LANES + 2];
    memset(stored, 0xa5, sizeof stored);
    (is_half ? table->store_f16 : table->store_bf16)(stored + 1, rounding->numbers);
    assert_int_equal(stored[0], 0xa5a5);
    assert_int_equal(stored[1 + table->lanes], 0xa5a5);
    for (int lane = 0; lane < table->lanes; lane++) {
        const float x = rounding->numbers[lane];
        const uint16_t expected = is_half ? nearest_half(x) : nearest_bf16(x);
        if (stored[1 + lane] != expected)
            fail_msg("%s: %s: lane %d: %08x gives %04x, expected %04x", table->name,
                     is_half ? "v_store_f16" : "v_store_bf16", lane, bits_of(x), stored[1 + lane], expected);
    }
}

/* Rounded in place: the stored number, or a NaN. */
static void expect_rounded(const struct rounding *rounding, bool is_half) {
    const struct vector_table *table = rounding->table;
    uint16_t stored[MOST_LANES];
    float got[MOST_LANES], expected[MOST_LANES];
    (is_half ? table->store_f16 : table->store_bf16)(stored, rounding->numbers);
    (is_half ? table->load_f16 : table->load_bf16)(stored, expected);
    (is_half ? table->round_f16 : table->round_bf16)(rounding->numbers, got);
    for (int lane = 0; lane < table->lanes; lane++)
        if (isnan(expected[lane]) ? !isnan(got[lane]) : bits_of(got[lane]) != bits_of(expected[lane]))
            fail_msg("%s: %s: lane %d: %08x gives %08x, expected %08x", table->name,
                     is_half ? "v_round_f16" : "v_round_bf16", lane, bits_of(rounding->numbers[lane]),
                     bits_of(got[lane]), bits_of(expected[lane]));
}

static void add(struct rounding *rounding, uint32_t bits) {
    rounding->numbers[rounding->count++] = float_of(bits);
    if (rounding->count < rounding->table->lanes)
        return;
    expect_nearest(rounding, true);
    expect_nearest(rounding, false);
    expect_rounded(rounding, true);
    expect_rounded(rounding, false);
    rounding->count = 0;
}

/* Both signs, and their neighbours. */
static void add_around(struct rounding *rounding, uint32_t bits) {
    for (uint32_t next = 0; next < 3; next++) {
        add(rounding, (bits + next - (bits != 0)) & 0x7fffffffu);
        add(rounding, (bits + next - (bits != 0)) | 0x80000000u);
    }
}

void test_rounding(const struct vector_table *table) {
    struct rounding rounding = {.table = table};
    const int64_t step = scaled_work(100) < 100 ? 7 : 1; /* emulated */
    for (uint32_t half = 0; half < 0x7c00; half += (uint32_t)step) { /* its number, and the tie above it */
        const double unit = half < 0x400 ? 0x1p-24 : ldexp(1, (int)(half >> 10) - 25);
        const double number = ((half < 0x400 ? 0 : 1024) + (half & 1023)) * unit;
        add_around(&rounding, bits_of((float)number));
        add_around(&rounding, bits_of((float)(number + unit / 2)));
    }
    for (uint32_t high = 0; high < 0x8000; high += (uint32_t)step) { /* the same for bfloat16, and every kind of NaN */
        add_around(&rounding, high << 16);
        add_around(&rounding, high << 16 | 0x8000);
    }
    for (uint32_t fraction = 1; fraction < 0x400; fraction++) {
        add_around(&rounding, 0x7f800000u | fraction << 13);
        add_around(&rounding, 0x7f800000u | fraction << 13 | 0x1fff);
    }
    struct random random = {10};
    for (int64_t number = scaled_work(200000); number > 0; number--)
        add(&rounding, (uint32_t)random_bits(&random));
    for (int64_t number = 0; number < SPECIALS + MOST_LANES; number++)
        add(&rounding, bits_of(special(number)));
}
