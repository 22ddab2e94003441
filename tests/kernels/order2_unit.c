/* SPDX-License-Identifier: MIT
 * The matrix unit of src/reference/unit.c: against known answers, its hash, and this machine's instructions, if any. */
#include <math.h>
#include <stdio.h>

#include "kernels/order2_unit.h"
#include "reference/order2.h"
#include "support/cmocka_all.h"
#include "support/support.h"

/* ---- known answers: each is wrong in a model that differs in one point */

struct answer {
    uint32_t c;
    struct {
        int at;
        uint16_t a, b; /* bfloat16 */
    } product[3];
    uint32_t expected;
    const char *sees;
};

static const struct answer answers[] = {
    {0x3f800000, {{0, 0x3380, 0x3f80}, {1, 0x3380, 0x3f80}}, 0x3f800001, "even + odd before C"},
    {0, {{0, 0x3380, 0x3f80}, {2, 0x3380, 0x3f80}, {4, 0x3f80, 0x3f80}}, 0x3f800001, "terms ascending"},
    {0x3f800000, {{0, 0x3380, 0x3f80}, {2, 0x3380, 0x3f80}}, 0x3f800001, "chains do not start at C"},
    {0, {{0, 0x3380, 0x3f80}, {1, 0x3f80, 0x3f80}, {2, 0x3380, 0x3f80}}, 0x3f800001, "two chains"},
    {0, {{0, 0x3f80, 0x3f80}, {2, 0x3380, 0x3f80}}, 0x3f800000, "ties to even"},
    {0, {{0, 0x3f80, 0x3f80}, {2, 0x3f81, 0x3381}}, 0x3f800001, "one rounding"},
    {0, {{0, 0x7f00, 0xbf80}, {2, 0x5f80, 0x5f80}}, 0x7f000000, "products are not rounded"},
    {0, {{0, 0x0080, 0x3f80}, {2, 0xb300, 0x0080}}, 0x00800000, "tiny after rounding"},
    {0, {{0, 0x0080, 0x3f80}, {2, 0xb301, 0x0080}}, 0x00000000, "24 bits, then zero"},
    {0, {{0, 0x0080, 0x3f00}, {2, 0x0080, 0x3f00}}, 0x00000000, "zero at each step"},
    {0, {{0, 0x0001, 0x7f00}}, 0x00000000, "denormal a, b"},
    {0x007fffff, {{0, 0x0080, 0x3f80}}, 0x00800000, "denormal C"},
    {0x80c00000, {{0, 0x0080, 0x3f80}}, 0x80000000, "the last sum, its sign"},
    {0x7f800000, {{0, 0x7f80, 0xbf80}}, 0xffc00000, "infinity - infinity"},
    {0, {{0, 0x7f80, 0x0001}}, 0xffc00000, "infinity * denormal"},
    {0x7f800123, {{0, 0x7fc0, 0x3f80}, {1, 0xffc1, 0x3f80}}, 0x7fc00123, "NaN of C first"},
    {0, {{0, 0x3f80, 0x7f81}, {1, 0xffc1, 0x3f80}}, 0x7fc10000, "NaN of the even terms first"},
    {0, {{0, 0x7fc3, 0xffc2}}, 0x7fc30000, "NaN of a first"},
    {0xff000000, {{0, 0x7f00, 0x3f80}, {1, 0x7f00, 0x3f80}}, 0x7f800000, "the inner sum overflows"},
};

static void test_known_answers(void **state) {
    for (size_t n = 0; n < sizeof answers / sizeof *answers; n++) {
        const struct answer *answer = &answers[n];
        uint32_t a[TILE_TERMS] = {0}, b[TILE_TERMS] = {0};
        for (int i = 0; i < 3; i++) {
            a[answer->product[i].at] |= (uint32_t)answer->product[i].a << 16;
            b[answer->product[i].at] |= (uint32_t)answer->product[i].b << 16;
        }
        const uint32_t got = rapt_unit_dot(answer->c, a, b, TILE_TERMS / 2);
        if (got != answer->expected)
            fail_msg("%s: got %08x, expected %08x", answer->sees, got, answer->expected);
    }
    (void)state;
}

/* ---- random tiles */

enum tile_class {
    NORMAL,
    SMALL_PRODUCTS, /* products with exponents near -126 */
    SMALL_SUMS,     /* sums near 2^-126, of products of powers of two */
    DENORMALS,
    HUGE_NUMBERS, /* sums that overflow, and come back */
    INFINITIES,
    NANS,
    ZEROS,   /* half of all, of both signs */
    CANCELS, /* each product with its negative */
    SPREAD,  /* exponents everywhere */
    ANY_BITS,
    CLASSES
};

/* A bfloat16 or float16 with this exponent, if the type has it. */
static uint16_t number(struct random *random, int exponent, bool is_half) {
    const uint16_t bits = (uint16_t)random_bits(random);
    const int bias = is_half ? 15 : 127, fraction = is_half ? 10 : 7, most = 2 * bias;
    const int biased = exponent + bias < 0 ? 0 : exponent + bias > most ? most : exponent + bias;
    return (uint16_t)((bits & 0x8000u) | (unsigned)biased << fraction | (bits & ((1u << fraction) - 1)));
}

static uint16_t term(struct random *random, enum tile_class kind, bool is_half) {
    const int low = is_half ? -12 : -63; /* of a factor whose products are about the smallest normal ones */
    const uint16_t infinity = is_half ? 0x7c00 : 0x7f80, sign = (uint16_t)(random_bits(random) & 0x8000u);
    switch (kind) {
    case SMALL_PRODUCTS: return number(random, low + (int)random_between(random, -4, 6), is_half);
    case SMALL_SUMS:
        return (uint16_t)(number(random, low + (int)random_between(random, -13, 1), is_half) &
                          (is_half ? 0xfe00 : 0xffc0));
    case DENORMALS: return random_chance(random, 50) ? number(random, -200, is_half) : number(random, 0, is_half);
    case HUGE_NUMBERS: return number(random, (is_half ? 15 : 64) - (int)random_between(random, 0, 3), is_half);
    case INFINITIES: return random_chance(random, 4) ? infinity | sign : number(random, 0, is_half);
    case NANS:
        return random_chance(random, 4) ? (uint16_t)(random_bits(random) | infinity) : number(random, 0, is_half);
    case ZEROS: return random_chance(random, 50) ? sign : number(random, low - 1, is_half);
    case SPREAD: return number(random, (int)random_between(random, -140, 127), is_half);
    case ANY_BITS: return (uint16_t)random_bits(random);
    default: return number(random, -(int)random_below(random, 6), is_half);
    }
}

static uint32_t accumulator(struct random *random, enum tile_class kind) {
    static const uint32_t edges[] = {0, 0x80000000u, 0x00800000u, 0x007fffffu, 0x807fffffu, 0x80c00000u, 0x7f7fffffu,
                                     0xff000000u};
    const uint32_t bits = (uint32_t)random_bits(random);
    if (kind == ANY_BITS)
        return bits;
    if (kind == NANS && random_chance(random, 10))
        return bits | 0x7f800000u;
    if (kind == NORMAL || kind == CANCELS || random_chance(random, 50))
        return bits_of(random_normal(random));
    return edges[bits % (sizeof edges / sizeof *edges)];
}

static void draw(struct random *random, enum tile_class kind, bool is_half, struct tiles *tiles) {
    const bool is_full = random_chance(random, 50);
    memset(tiles, 0, sizeof *tiles);
    tiles->rows = is_full ? TILE_ROWS : (int)random_between(random, 1, TILE_ROWS);
    tiles->columns = is_full ? TILE_COLUMNS : (int)random_between(random, 1, TILE_COLUMNS);
    tiles->pairs = is_full ? TILE_TERMS / 2 : (int)random_between(random, 1, TILE_TERMS / 2);
    for (int k = 0; k < 2 * tiles->pairs; k++) {
        const bool is_opposite = kind == CANCELS && k % 4 >= 2 && random_chance(random, 90);
        for (int m = 0; m < tiles->rows; m++)
            tiles->a[m][k] = is_opposite ? tiles->a[m][k - 2] ^ 0x8000u : term(random, kind, is_half);
        for (int n = 0; n < tiles->columns; n++)
            tiles->b[k / 2][n][k % 2] = is_opposite ? tiles->b[k / 2 - 1][n][k % 2] : term(random, kind, is_half);
    }
    for (int m = 0; m < tiles->rows; m++)
        for (int n = 0; n < tiles->columns; n++)
            tiles->c[m][n] = float_of(accumulator(random, kind));
}

/* ---- the specification on them */

/* Bits as float32; a NaN's fraction is kept. */
static uint32_t widened(uint16_t x, bool is_half) {
    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, fraction = x & 0x3ffu, exponent = x >> 10 & 31;
    if (!is_half)
        return (uint32_t)x << 16;
    if (exponent == 31)
        return sign | 0x7f800000u | fraction << 13;
    return sign | bits_of(ldexpf((float)(exponent ? 1024 + fraction : fraction), (int)(exponent ? exponent : 1) - 25));
}

static uint32_t specified(const struct tiles *tiles, int m, int n, bool is_half, bool in_integers) {
    uint32_t a[TILE_TERMS], b[TILE_TERMS], sums[2] = {0, 0};
    for (int k = 0; k < 2 * tiles->pairs; k++) {
        a[k] = widened(tiles->a[m][k], is_half);
        b[k] = widened(tiles->b[k / 2][n][k % 2], is_half);
    }
    const uint32_t c = bits_of(tiles->c[m][n]);
    if (!in_integers)
        return rapt_unit_dot(c, a, b, tiles->pairs);
    for (int k = 0; k < 2 * tiles->pairs; k++)
        sums[k % 2] = rapt_unit_fma(a[k], b[k], sums[k % 2]);
    return rapt_unit_add(c, rapt_unit_add(sums[0], sums[1]));
}

static void expect_number(uint32_t got, uint32_t expected, const struct tiles *tiles, const char *what, int kind) {
    if (got != expected)
        fail_msg("%s, class %d, %d rows, %d columns, %d pairs: got %08x, expected %08x", what, kind, tiles->rows,
                 tiles->columns, tiles->pairs, got, expected);
}

static uint64_t hash_of_class(enum tile_class kind, bool is_half) {
    struct random random = {(uint64_t)kind * 2 + is_half + 1};
    struct tiles tiles;
    uint64_t hash = HASH_START;
    for (int t = 0; t < 8; t++) {
        draw(&random, kind, is_half, &tiles);
        for (int m = 0; m < tiles.rows; m++)
            for (int n = 0; n < tiles.columns; n++) {
                const uint32_t exact = specified(&tiles, m, n, is_half, true);
                expect_number(specified(&tiles, m, n, is_half, false), exact, &tiles, "the shorter way", (int)kind);
                hash = hash_word(hash, exact);
            }
    }
    return hash;
}

/* The instructions' hashes on machines that have them. */
static void test_hashes(void **state) {
    static const uint64_t expected[2] = {0x76fac1fae3dc9aefu, 0x904a547abf1ef84au};
    for (int is_half = 0; is_half < 2; is_half++) {
        uint64_t hash = HASH_START;
        for (int kind = 0; kind < CLASSES; kind++) {
            const uint64_t of_class = hash_of_class((enum tile_class)kind, is_half);
            hash = hash_word(hash_word(hash, (uint32_t)of_class), (uint32_t)(of_class >> 32));
        }
        if (hash != expected[is_half])
            fail_msg("%s: hash %#018llx, expected %#018llx", is_half ? "float16" : "bfloat16",
                     (unsigned long long)hash, (unsigned long long)expected[is_half]);
    }
    (void)state;
}

/* Numbers around the edges of what the specification leaves to the machine, with chains that cancel; some are zeros
 * against an infinity, which give NaN. */
static void test_shorter_way(void **state) {
    static const int exponents[] = {-97, -64, -56, -53, 59, 61, 63, 124};
    enum { EXPONENTS = sizeof exponents / sizeof *exponents };
    struct random random = {78};
    for (int is_half = 0; is_half < 2; is_half++)
        for (int64_t n = 0; n < scaled_work(40000); n++) {
            uint32_t a[TILE_TERMS], b[TILE_TERMS], sums[2] = {0, 0};
            const int low = exponents[n % EXPONENTS], of_b = random_chance(&random, 50) ? low : -8;
            const uint32_t sizes = is_half ? 0x807fe000u : 0x807f0000u;
            const uint32_t c = bits_of(ldexpf(random_normal(&random), low + of_b < 100 ? low + of_b : 100));
            const bool is_zero = random_chance(&random, 10);
            const int64_t infinite = random_chance(&random, 10) ? random_below(&random, TILE_TERMS) : -1;
            for (int k = 0; k < TILE_TERMS; k++) {
                const bool is_opposite = k % 4 >= 2 && random_chance(&random, 90);
                const int exponent_a = 127 + low + (int)random_below(&random, 3);
                const int exponent_b = 127 + of_b + (int)random_below(&random, 3);
                a[k] = ((uint32_t)random_bits(&random) & sizes) | (uint32_t)exponent_a << 23;
                b[k] = ((uint32_t)random_bits(&random) & sizes) | (uint32_t)exponent_b << 23;
                if (is_opposite) {
                    a[k] = a[k - 2] ^ 0x80000000u;
                    b[k] = b[k - 2];
                }
                a[k] &= is_zero ? 0x80000000u : UINT32_MAX;
                b[k] = k == infinite ? 0x7f800000u : b[k];
                sums[k % 2] = rapt_unit_fma(a[k], b[k], sums[k % 2]);
            }
            const uint32_t expected = rapt_unit_add(c, rapt_unit_add(sums[0], sums[1]));
            const bool is_swapped = n % 3 == 0;
            const uint32_t got = rapt_unit_dot(c, is_swapped ? b : a, is_swapped ? a : b, TILE_TERMS / 2);
            if (got != expected)
                fail_msg("tile %lld, exponents from %d: got %08x, expected %08x", (long long)n, low, got, expected);
        }
    (void)state;
}

/* A million outputs. */
static void test_instruction(bool is_half) {
    struct random random = {77 + (uint64_t)is_half};
    const int64_t most = scaled_work(1000000);
    if (!tile_unit_has(is_half)) {
        print_message("# no %s\n", is_half ? "TDPFP16PS" : "TDPBF16PS");
        skip();
    }
    for (int64_t outputs = 0, kind = 0; outputs < most; kind = (kind + 1) % CLASSES) {
        struct tiles tiles, before;
        draw(&random, (enum tile_class)kind, is_half, &before);
        tiles = before;
        tile_unit_run(&tiles, is_half);
        for (int m = 0; m < tiles.rows; m++)
            for (int n = 0; n < tiles.columns; n++)
                expect_number(bits_of(tiles.c[m][n]), specified(&before, m, n, is_half, false), &before,
                              "the instruction", (int)kind);
        outputs += tiles.rows * tiles.columns;
    }
}

/* A million outputs of VDPBF16PS, by the steps of a chain. */
static void test_dots(void **state) {
    struct random random = {79};
    const int64_t most = scaled_work(1000000);
    if (!dot_unit_has()) {
        print_message("# no VDPBF16PS\n");
        skip();
    }
    for (int64_t outputs = 0, kind = 0; outputs < most; kind = (kind + 1) % CLASSES) {
        struct tiles tiles, before;
        draw(&random, (enum tile_class)kind, false, &before);
        tiles = before;
        dot_unit_run(&tiles);
        for (int m = 0; m < tiles.rows; m++)
            for (int n = 0; n < tiles.columns; n++) {
                uint32_t sum = bits_of(before.c[m][n]);
                for (int k = 0; k < before.pairs; k++)
                    for (int i = 1; i >= 0; i--)
                        sum = rapt_unit_fma(widened(before.a[m][2 * k + i], false),
                                            widened(before.b[k][n][i], false), sum);
                expect_number(bits_of(tiles.c[m][n]), sum, &before, "VDPBF16PS", (int)kind);
            }
        outputs += tiles.rows * tiles.columns;
    }
    (void)state;
}

static void test_bfloat16(void **state) {
    test_instruction(false);
    (void)state;
}

static void test_float16(void **state) {
    test_instruction(true);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_answers), cmocka_unit_test(test_hashes),
                                       cmocka_unit_test(test_shorter_way),
                                       cmocka_unit_test(test_bfloat16), cmocka_unit_test(test_float16),
                                       cmocka_unit_test(test_dots)};
    return cmocka_run_group_tests_name("order2_unit", tests, NULL, NULL);
}
