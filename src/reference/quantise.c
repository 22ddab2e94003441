/* SPDX-License-Identifier: MIT
 * float32 rows to stored rows, number by number (docs/numerics.md, stored numbers). Blocks follow ggml's
 * quantize_row_*_ref. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/reference.h"

enum { Q8_0 = 5, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL }; /* as in rapt_dtype */

/* The code of a binary format's number nearest to x, ties to even; codes above `most`, which may be infinity, become
 * `most`. */
static unsigned ieee_of(float x, int exponent_bits, int fraction_bits, unsigned most, unsigned nan) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const unsigned sign = signbit(x) ? 1u << (exponent_bits + fraction_bits) : 0;
    int exponent;
    if (isnan(x))
        return nan;
    if (isinf(x))
        return sign | most;
    frexpf(x, &exponent);
    exponent = exponent - 1 < 1 - bias || x == 0 ? 1 - bias : exponent - 1;
    const double units = nearbyint(ldexp(fabs((double)x), fraction_bits - exponent));
    const unsigned code = ((unsigned)(exponent + bias - 1) << fraction_bits) + (unsigned)units;
    return sign | (code < most ? code : most);
}

static void put_word(unsigned char *into, unsigned word) {
    into[0] = (unsigned char)word;
    into[1] = (unsigned char)(word >> 8);
}

static void put_half(unsigned char *into, float x) { put_word(into, ieee_of(x, 5, 10, 0x7c00, 0x7e00)); }

static float inverse_of(float d) { return d != 0 && isfinite(1.0f / d) ? 1.0f / d : 0; }

/* What the block formats use of 32 numbers. */
struct block {
    float amax, max; /* largest magnitude, and the first number that has it */
    float low, high; /* likewise the least and the largest number */
    bool finite;
};

static struct block block_of(const float *x) {
    struct block b = {0, 0, FLT_MAX, -FLT_MAX, true};
    for (int i = 0; i < 32; i++) {
        b.finite = b.finite && isfinite(x[i]);
        if (b.amax < fabsf(x[i])) {
            b.amax = fabsf(x[i]);
            b.max = x[i];
        }
        if (x[i] < b.low)
            b.low = x[i];
        if (x[i] > b.high)
            b.high = x[i];
    }
    return b;
}

/* `bits` bits of each code: the lower four in nibbles, the fifth, if any, before them. */
static void put_codes(unsigned char *into, const int *codes, int bits) {
    if (bits == 5) {
        memset(into, 0, 4);
        for (int i = 0; i < 32; i++)
            into[i / 8] |= (unsigned char)((codes[i] >> 4) << i % 8);
        into += 4;
    }
    for (int i = 0; i < 16; i++)
        into[i] = (unsigned char)((codes[i] & 15) + 16 * (codes[i + 16] & 15));
}

static void store_q8_0(const float *x, unsigned char *into) {
    const struct block b = block_of(x);
    const float d = b.amax / 127;
    put_half(into, d);
    for (int i = 0; i < 32; i++)
        into[2 + i] = (unsigned char)(int)roundf(x[i] * inverse_of(d));
}

static void store_signed(const float *x, unsigned char *into, int bits) {
    const int half = 1 << (bits - 1);
    const float d = block_of(x).max / (float)-half;
    int codes[32];
    put_half(into, d);
    for (int i = 0; i < 32; i++) {
        codes[i] = (int)(x[i] * inverse_of(d) + ((float)half + 0.5f));
        codes[i] = codes[i] < 2 * half - 1 ? codes[i] : 2 * half - 1;
    }
    put_codes(into + 2, codes, bits);
}

static void store_range(const float *x, unsigned char *into, int bits) {
    const struct block b = block_of(x);
    const int most = (1 << bits) - 1;
    const float d = (b.high - b.low) / (float)most;
    int codes[32];
    put_half(into, d);
    put_half(into + 2, b.low);
    for (int i = 0; i < 32; i++) {
        codes[i] = (int)((x[i] - b.low) * inverse_of(d) + 0.5f);
        codes[i] = codes[i] < most ? codes[i] : most;
    }
    put_codes(into + 4, codes, bits);
}

static int nearest_level(const signed char *levels, float x) {
    int low = 0, high = 15;
    if (x <= levels[0])
        return 0;
    if (x >= levels[15])
        return 15;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (x < levels[middle])
            high = middle;
        else
            low = middle;
    }
    return x - levels[high - 1] < levels[high] - x ? high - 1 : high;
}

static void store_iq4_nl(const float *x, unsigned char *into) {
    static const signed char levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    const struct block b = block_of(x);
    float products = 0, squares = 0;
    int codes[32];
    memset(into, 0, 18);
    if (b.amax < 1e-15f)
        return;
    const float inverse = 1 / (b.max / levels[0]);
    for (int i = 0; i < 32; i++) {
        codes[i] = nearest_level(levels, inverse * x[i]);
        const float level = levels[codes[i]], weight = x[i] * x[i];
        products += weight * level * x[i];
        squares += weight * level * level;
    }
    put_half(into, squares > 0 ? products / squares : 0);
    put_codes(into + 2, codes, 4);
}

/* A block that cannot be stored. */
static bool is_lost(int32_t dtype, const float *x) {
    const struct block b = block_of(x);
    return !b.finite || ((dtype == Q4_1 || dtype == Q5_1) && isinf(b.high - b.low));
}

static void store_block(int32_t dtype, const float *x, unsigned char *into) {
    if (is_lost(dtype, x)) {
        memset(into, 0, (size_t)rapt_row_bytes(dtype, 32));
        put_half(into, NAN);
        return;
    }
    switch (dtype) {
    case Q8_0:
        store_q8_0(x, into);
        return;
    case Q4_0:
        store_signed(x, into, 4);
        return;
    case Q5_0:
        store_signed(x, into, 5);
        return;
    case Q4_1:
        store_range(x, into, 4);
        return;
    case Q5_1:
        store_range(x, into, 5);
        return;
    case IQ4_NL:
        store_iq4_nl(x, into);
        return;
    default:
        abort();
    }
}

/* Numbers after division by the scale. */
static unsigned char byte_of(int32_t dtype, float t, int zero_point) {
    if (dtype == RAPT_F8_E4M3)
        return (unsigned char)ieee_of(t, 4, 3, 0x7e, 0x7f);
    if (dtype == RAPT_F8_E5M2)
        return (unsigned char)ieee_of(t, 5, 2, 0x7b, 0x7e);
    const double code = isnan(t) ? zero_point : nearbyint((double)t) + zero_point;
    return (unsigned char)(int)fmin(fmax(code, -128), 127);
}

/* The scale and the zero point of some numbers; NaN if one is not finite or the range overflows. */
static float scale_of(int32_t dtype, const float *x, int64_t count, signed char *zero_point) {
    const float most = dtype == RAPT_F8_E4M3 ? 448 : dtype == RAPT_F8_E5M2 ? 57344 : 127;
    float low = 0, high = 0;
    for (int64_t d = 0; d < count; d++) {
        if (!isfinite(x[d]))
            return NAN;
        low = fminf(low, x[d]);
        high = fmaxf(high, x[d]);
    }
    if (!zero_point)
        return (-low > high ? -low : high) / most;
    const float scale = (high - low) / 255;
    if (isinf(scale))
        return NAN;
    if (scale > 0)
        *zero_point = (signed char)(fmin(nearbyint((double)(-low / scale)), 255) - 128);
    return scale;
}

static void store_group(int32_t dtype, const float *x, int64_t count, const struct rapt_reference_scales *scales,
                        int64_t group, unsigned char *into) {
    signed char *zero_point = scales->zero_points ? &scales->zero_points[group] : NULL;
    if (scales->computes && zero_point)
        *zero_point = 0;
    if (scales->computes)
        scales->scales[group] = scale_of(dtype, x, count, zero_point);
    const float scale = scales->scales ? scales->scales[group] : 1;
    for (int64_t d = 0; d < count; d++)
        into[d] = scales->computes && !(scale > 0) ? 0 : byte_of(dtype, x[d] / scale, zero_point ? *zero_point : 0);
}

static void store_groups(int32_t dtype, const float *x, int64_t dim, const struct rapt_reference_scales *scales,
                         unsigned char *into) {
    const int64_t group = scales->group ? scales->group : dim;
    for (int64_t d = 0; d < dim; d += group)
        store_group(dtype, x + d, dim - d < group ? dim - d : group, scales, d / group, into + d);
}

void rapt_reference_store(int32_t dtype, const float *x, int64_t dim, void *row) {
    static const struct rapt_reference_scales none = {NULL, NULL, 0, false};
    rapt_reference_store_scaled(dtype, x, dim, &none, row);
}

void rapt_reference_store_scaled(int32_t dtype, const float *x, int64_t dim, const struct rapt_reference_scales *scales,
                                 void *row) {
    unsigned char *into = row;
    switch (dtype) {
    case RAPT_F32:
        for (int64_t d = 0; d < dim; d++) {
            const float number = isnan(x[d]) ? NAN : x[d];
            memcpy(into + 4 * d, &number, sizeof number);
        }
        return;
    case RAPT_F16:
        for (int64_t d = 0; d < dim; d++)
            put_half(into + 2 * d, x[d]);
        return;
    case RAPT_BF16:
        for (int64_t d = 0; d < dim; d++)
            put_word(into + 2 * d, ieee_of(x[d], 8, 7, 0x7f80, 0x7fc0));
        return;
    case RAPT_F8_E4M3:
    case RAPT_F8_E5M2:
    case RAPT_I8:
        store_groups(dtype, x, dim, scales, into);
        return;
    default:
        for (int64_t d = 0; d < dim; d += 32)
            store_block(dtype, x + d, into + d / 32 * rapt_row_bytes(dtype, 32));
    }
}
