/* SPDX-License-Identifier: MIT
 *
 * The matrix unit of x86 in integers: one output of TDPBF16PS and TDPFP16PS, which differ only in how their inputs are
 * widened. Everything is float32 and rounds to nearest even. A denormal input counts as zero of its sign; a result
 * that is tiny after rounding becomes zero of its sign. The unit knows no rounding mode and no flags.
 */
#include <string.h>

#include "reference/order2.h"

__extension__ typedef unsigned __int128 uint128;

enum { TOP = 100 }; /* where the larger summand has its highest bit */

static const uint32_t no_number = 0xffc00000u;

/* A finite number: mantissa * 2^exponent; the lowest bit may stand for lost ones. */
struct exact {
    bool negative;
    uint128 mantissa;
    int exponent;
};

static bool is_nan(uint32_t x) { return (x & 0x7fffffffu) > 0x7f800000u; }
static bool is_infinite(uint32_t x) { return (x & 0x7fffffffu) == 0x7f800000u; }
static bool is_negative(uint32_t x) { return x >> 31; }

static struct exact exact_of(uint32_t x) {
    int biased = (int)(x >> 23 & 255);
    struct exact exact = {is_negative(x), 0, 0};
    if (biased != 0) {
        exact.mantissa = (x & 0x7fffffu) | 0x800000u;
        exact.exponent = biased - 150;
    }
    return exact;
}

/* Of a number that is not 0. */
static int highest_bit(uint128 x) {
    uint64_t high = (uint64_t)(x >> 64);
    return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll((uint64_t)x);
}

static uint32_t rounded(struct exact x) {
    uint32_t sign = (uint32_t)x.negative << 31;
    if (x.mantissa == 0) {
        return sign;
    }
    int shift = highest_bit(x.mantissa) - 23;
    int exponent = shift + 23 + x.exponent;
    uint32_t kept = (uint32_t)(shift <= 0 ? x.mantissa << -shift : x.mantissa >> shift);
    if (shift > 0) {
        uint128 rest = x.mantissa & (((uint128)1 << shift) - 1), half = (uint128)1 << (shift - 1);
        kept += rest > half || (rest == half && (kept & 1));
    }
    if (kept >> 24) {
        kept >>= 1;
        exponent++;
    }
    return exponent < -126  ? sign
           : exponent > 127 ? sign | 0x7f800000u
                            : sign | (uint32_t)(exponent + 127) << 23 | (kept & 0x7fffffu);
}

/* Shifts left, or right by -left; bits that fall off stay visible in bit 0. */
static uint128 moved(uint128 mantissa, int left) {
    if (left >= 0) {
        return mantissa << left;
    }
    if (-left > TOP) {
        return mantissa != 0;
    }
    uint128 kept = mantissa >> -left;
    return kept | (kept << -left != mantissa);
}

static struct exact sum(struct exact x, struct exact y) {
    if (x.mantissa == 0 && y.mantissa == 0) {
        return (struct exact){x.negative && y.negative, 0, 0};
    }
    int top_x = x.mantissa ? highest_bit(x.mantissa) + x.exponent : INT32_MIN;
    int top_y = y.mantissa ? highest_bit(y.mantissa) + y.exponent : INT32_MIN;
    struct exact result = {false, 0, (top_x > top_y ? top_x : top_y) - TOP};
    uint128 a = x.mantissa ? moved(x.mantissa, x.exponent - result.exponent) : 0;
    uint128 b = y.mantissa ? moved(y.mantissa, y.exponent - result.exponent) : 0;
    if (x.negative == y.negative) {
        result.mantissa = a + b;
        result.negative = x.negative;
    } else {
        result.mantissa = a > b ? a - b : b - a;
        result.negative = a == b ? false : a > b ? x.negative : y.negative;
    }
    return result;
}

static bool is_zero(uint32_t x) { return exact_of(x).mantissa == 0 && !is_infinite(x) && !is_nan(x); }

static uint32_t fma_of_finite(uint32_t a, uint32_t b, uint32_t c) {
    struct exact x = exact_of(a), y = exact_of(b);
    struct exact product = {x.negative != y.negative, x.mantissa * y.mantissa, x.exponent + y.exponent};
    return rounded(sum(product, exact_of(c)));
}

uint32_t rapt_unit_fma(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sign = (a ^ b) & 0x80000000u;
    if (is_nan(a) || is_nan(b) || is_nan(c)) {
        return (is_nan(a) ? a : is_nan(b) ? b : c) | 0x400000u;
    }
    if (is_infinite(a) || is_infinite(b)) {
        bool clashes = is_infinite(c) && (sign ^ c) >> 31;
        return is_zero(a) || is_zero(b) || clashes ? no_number : sign | 0x7f800000u;
    }
    return is_infinite(c) ? c : fma_of_finite(a, b, c);
}

uint32_t rapt_unit_add(uint32_t x, uint32_t y) { return rapt_unit_fma(x, 0x3f800000u, y); }

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool is_normal(uint32_t x) { return (x >> 23 & 255) - 1 < 254; }

static bool is_finite(uint32_t x) { return (x >> 23 & 255) != 255; }

/* rapt_unit_fma, but faster far from where it differs from the machine. Products of bfloat16 (8 bits), float16 (11) and
 * 1 are exact, so only the addition rounds. */
static uint32_t step(uint32_t a, uint32_t b, uint32_t c) {
    if (is_normal(a) && is_normal(b) && (is_normal(c) || c == 0)) {
        float product = float_of(a) * float_of(b);
        uint32_t result = bits_of(product + float_of(c));
        if (is_normal(bits_of(product)) && is_normal(result) && (result >> 23 & 255) > 2) {
            return result;
        }
    }
    if ((is_normal(c) || c == 0) && ((a << 1 == 0 && is_finite(b)) || (b << 1 == 0 && is_finite(a)))) {
        return c;
    }
    return rapt_unit_fma(a, b, c);
}

static uint32_t add(uint32_t x, uint32_t y) { return step(x, 0x3f800000u, y); }

/* The smallest and the largest of the numbers but 0, without their signs; most is 0 if there is none. */
struct sizes {
    uint32_t least, most;
};

static struct sizes sizes_of(const uint32_t *x, int64_t count) {
    uint32_t least = UINT32_MAX, most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t size = x[i] & 0x7fffffffu, less_one = size - 1; /* of 0 the largest */
        least = less_one < least ? less_one : least;
        most = size > most ? size : most;
    }
    return (struct sizes){least + 1, most};
}

/* Whether the machine does what the unit does. Numbers have 11 bits or fewer, so if the exponents of the smallest ones
 * sum to -104 or more, all products and sums of a chain are multiples of 2^-124; if those of the largest ones sum to
 * 120 or less, they are below 2^127. So none is denormal or infinite. */
static bool is_ordinary(struct sizes a, struct sizes b) {
    const uint32_t biases = 2 * 127, least_a = a.least >> 23, least_b = b.least >> 23;
    return least_a != 0 && least_b != 0 && is_finite(a.most) && is_finite(b.most) &&
           least_a + least_b + 104 >= biases && (a.most >> 23) + (b.most >> 23) <= 120 + biases;
}

/* Such as the padding of a block. */
static bool is_zero_product(struct sizes a, struct sizes b) {
    return (a.most == 0 && is_finite(b.most)) || (b.most == 0 && is_finite(a.most));
}

static uint32_t dot(uint32_t c, const uint32_t *a, struct sizes of_a, const uint32_t *b, struct sizes of_b,
                    int64_t pairs) {
    if (is_zero_product(of_a, of_b)) {
        return add(c, 0);
    }
    if (is_ordinary(of_a, of_b)) {
        float even = 0.0f, odd = 0.0f;
        for (int64_t k = 0; k < pairs; k++) {
            even = even + float_of(a[2 * k]) * float_of(b[2 * k]);
            odd = odd + float_of(a[2 * k + 1]) * float_of(b[2 * k + 1]);
        }
        return add(c, bits_of(even + odd));
    }
    uint32_t even = 0, odd = 0;
    for (int64_t k = 0; k < pairs; k++) {
        even = step(a[2 * k], b[2 * k], even);
        odd = step(a[2 * k + 1], b[2 * k + 1], odd);
    }
    return add(c, add(even, odd));
}

uint32_t rapt_unit_dot(uint32_t c, const uint32_t *a, const uint32_t *b, int64_t pairs) {
    return dot(c, a, sizes_of(a, 2 * pairs), b, sizes_of(b, 2 * pairs), pairs);
}

float rapt_reference_unit(const float *a, const float *b, int64_t count) {
    uint32_t c = 0, x[RAPT_UNIT_TERMS], y[RAPT_UNIT_TERMS];
    for (int64_t k = 0; k < count; k += RAPT_UNIT_TERMS) {
        for (int64_t i = 0; i < RAPT_UNIT_TERMS; i++) {
            x[i] = k + i < count ? bits_of(a[k + i]) : 0;
            y[i] = k + i < count ? bits_of(b[k + i]) : 0;
        }
        c = rapt_unit_dot(c, x, y, RAPT_UNIT_TERMS / 2);
    }
    return float_of(c);
}

/* Order 3: a number in three bfloat16 parts. Denormals count as 0. Without branches, so that compilers use vectors. */

static uint32_t part(uint32_t x) {
    uint32_t nearest = (x + 0x7fffu + (x >> 16 & 1)) & 0xffff0000u;
    uint32_t number = (x >> 23 & 255) == 0 ? 0 : nearest;
    return is_nan(x) ? x : number;
}

enum { HIGH, MIDDLE, LOW, PARTS };

struct parts {
    uint32_t number[PARTS][RAPT_UNIT_TERMS];
    struct sizes sizes[PARTS];
};

RAPT_REFERENCE_ALSO_FOR("avx2")
static void split(struct parts *parts, const float *x, int64_t count) {
    float rest[RAPT_UNIT_TERMS];
    for (int64_t i = 0; i < RAPT_UNIT_TERMS; i++) {
        rest[i] = i < count ? x[i] : 0.0f;
    }
    for (int p = HIGH; p < PARTS; p++) {
        for (int64_t i = 0; i < RAPT_UNIT_TERMS; i++) {
            parts->number[p][i] = part(bits_of(rest[i]));
            rest[i] = rest[i] - float_of(parts->number[p][i]);
        }
        parts->sizes[p] = sizes_of(parts->number[p], RAPT_UNIT_TERMS);
    }
}

float rapt_reference_unit_split(const float *a, const float *b, int64_t count) {
    static const int terms[][2] = {{HIGH, LOW}, {MIDDLE, MIDDLE}, {HIGH, MIDDLE},
                                   {LOW, HIGH}, {MIDDLE, HIGH},   {HIGH, HIGH}};
    struct parts of_a, of_b;
    uint32_t c = 0;
    for (int64_t k = 0; k < count; k += RAPT_UNIT_TERMS) {
        split(&of_a, a + k, count - k);
        split(&of_b, b + k, count - k);
        for (size_t t = 0; t < sizeof terms / sizeof *terms; t++) {
            int x = terms[t][0], y = terms[t][1];
            c = dot(c, of_a.number[x], of_a.sizes[x], of_b.number[y], of_b.sizes[y], RAPT_UNIT_TERMS / 2);
        }
    }
    return float_of(c);
}
