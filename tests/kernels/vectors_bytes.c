/* SPDX-License-Identifier: MIT
 * float32 to bytes: float8 numbers, integers; and the largest lane. */
#include <math.h>

#include "kernels/vectors_check.h"
#include "support/cmocka_all.h"
#include "support/guarded.h"

struct bytes_store {
    const struct vector_table *table;
    void (*store)(uint8_t *p, const float *a);
    const char *name;
    int count; /* numbers accumulate until a vector is full */
    float numbers[MOST_LANES];
    uint8_t expected[MOST_LANES];
};

static void add(struct bytes_store *s, float x, unsigned expected) {
    s->numbers[s->count] = x;
    s->expected[s->count++] = (uint8_t)expected;
    if (s->count < s->table->lanes)
        return;
    for (int side = GUARD_END; side <= GUARD_BEGIN; side++) {
        struct guarded into = guarded_new((size_t)s->count, (enum guard_side)side, 0, 0xa5);
        s->store((uint8_t *)into.data, s->numbers);
        for (int i = 0; i < s->count; i++)
            if ((uint8_t)into.data[i] != s->expected[i])
                fail_msg("%s: %s: lane %d: %.9g gives %02x, expected %02x", s->table->name, s->name, i,
                         (double)s->numbers[i], (uint8_t)into.data[i], s->expected[i]);
        if (!guarded_is_clean(&into))
            fail_msg("%s: %s writes beside its bytes", s->table->name, s->name);
        guarded_free(&into);
    }
    s->count = 0;
}

static void add_both(struct bytes_store *s, float x, unsigned code) {
    add(s, x, code);
    add(s, -x, code | 128);
}

static float number_of(unsigned code, int fraction_bits, int bias) {
    const int exponent = (int)(code >> fraction_bits), fraction = (int)(code & ((1u << fraction_bits) - 1));
    return exponent ? ldexpf((float)(fraction + (1 << fraction_bits)), exponent - bias - fraction_bits)
                    : ldexpf((float)fraction, 1 - bias - fraction_bits);
}

static void check_float8(struct bytes_store s, int fraction_bits, int bias, unsigned most) {
    struct random random = {15};
    for (unsigned code = 0; code <= most; code++) {
        const float low = number_of(code, fraction_bits, bias), high = number_of(code + 1, fraction_bits, bias);
        const float middle = (low + high) / 2;
        add_both(&s, low, code);
        if (code == most)
            break;
        add_both(&s, nextafterf(low, high), code);
        add_both(&s, nextafterf(middle, low), code);
        add_both(&s, middle, code + code % 2);
        add_both(&s, nextafterf(middle, high), code + 1);
        for (int i = 0; i < 20; i++) {
            const float x = low + (high - low) * (random_uniform(&random) + 1) / 2;
            if (x != middle)
                add_both(&s, x, x < middle ? code : code + 1);
        }
    }
    add_both(&s, 0x1p-149f, 0);
    add_both(&s, 0x1p-126f, 0);
    for (int i = 0; i < MOST_LANES; i++)
        add(&s, 0, 0);
}

static void check_integers(struct bytes_store s) {
    for (int i = -128; i <= 255; i++) {
        const float ends[2] = {(float)i - 0.5f, (float)i + 0.5f};
        add(&s, (float)i, (unsigned)i);
        add(&s, nextafterf(ends[0], (float)i), (unsigned)i);
        add(&s, nextafterf(ends[1], (float)i), (unsigned)i);
        add(&s, ends[0], (unsigned)(i % 2 ? i - 1 : i));
        add(&s, ends[1], (unsigned)(i % 2 ? i + 1 : i));
    }
    add(&s, 1000, 1000);
    add(&s, -1000, (unsigned)-1000);
    add(&s, 0x1p21f, 0);
    for (int i = 0; i < MOST_LANES; i++)
        add(&s, 0x1p-149f, 0);
}

static void check_largest(const struct vector_table *table) {
    float a[MOST_LANES];
    struct random random = {16};
    for (int number = 0; number < 1000; number++) {
        float expected = -INFINITY;
        for (int lane = 0; lane < table->lanes; lane++) {
            a[lane] = number < 100 ? (float)(lane == number % table->lanes) : random_finite(&random) + 0;
            expected = a[lane] > expected ? a[lane] : expected;
        }
        if (bits_of(table->largest(a)) != bits_of(expected))
            fail_msg("%s: s_largest: %08x, expected %08x", table->name, bits_of(table->largest(a)), bits_of(expected));
    }
}

void test_bytes(const struct vector_table *table) {
    check_float8((struct bytes_store){.table = table, .store = table->store_e4m3, .name = "v_store_e4m3"}, 3, 7, 0x7e);
    check_float8((struct bytes_store){.table = table, .store = table->store_e5m2, .name = "v_store_e5m2"}, 2, 15, 0x7b);
    const float nans[2] = {480, 98304};
    uint8_t codes[MOST_LANES];
    float a[MOST_LANES];
    for (int which = 0; which < 2; which++) {
        for (int lane = 0; lane < MOST_LANES; lane++)
            a[lane] = lane % 2 ? -nans[which] : nans[which];
        (which ? table->store_e5m2 : table->store_e4m3)(codes, a);
        for (int lane = 0; lane < table->lanes; lane++)
            assert_int_equal(codes[lane], (which ? 0x7e : 0x7f) | lane % 2 << 7);
    }
    check_integers((struct bytes_store){.table = table, .store = table->store_byte, .name = "v_store_byte"});
    check_largest(table);
}
