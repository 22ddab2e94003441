/* SPDX-License-Identifier: MIT
 * Frequencies, in double with basic operations only, so that they are the same on every system. */
#include "append/rotary.h"

#include <string.h>

#define TWO_PI 0x1.921fb54442d18p+2
#define LN2 0x1.62e42fefa39efp-1
#define LOG2E 0x1.71547652b82fep+0

/* x > 0, normal: k + log2(f), f in [sqrt(1/2), sqrt(2)), by the series of the inverse hyperbolic tangent. */
static double log2_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int64_t k = (int64_t)(bits - UINT64_C(0x3fe6a09e667f3bcd)) >> 52;
    bits -= (uint64_t)k << 52;
    double f;
    memcpy(&f, &bits, sizeof f);
    const double s = (f - 1) / (f + 1), w = s * s;
    double p = 0;
    for (int i = 23; i >= 1; i -= 2)
        p = p * w + 1.0 / i;
    return (double)k + s * p * (2 * LOG2E);
}

/* 2^y, -1000 <= y <= 1000: the power series of e^r. */
static double exp2_of(double y) {
    const double n = y + 6755399441055744.0 - 6755399441055744.0, r = (y - n) * LN2;
    double p = 1;
    for (int i = 14; i >= 1; i--)
        p = p * r / i + 1;
    const uint64_t bits = (uint64_t)((int64_t)n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

static double limit(double x, double least, double most) { return x < least ? least : x > most ? most : x; }

static double floor_of(double x) { /* |x| < 2^53 */
    const double whole = (double)(int64_t)x;
    return whole > x ? whole - 1 : whole;
}

/* The pair that turns so often in the original length. */
static double pair_of_turns(const rapt_rotary *rotary, double turns) {
    return (double)rotary->dim * log2_of(rotary->original_length / (turns * TWO_PI)) / (2 * log2_of(rotary->base));
}

static double yarn(const rapt_rotary *rotary, double f, int pair) {
    const double most = (double)rotary->dim - 1;
    const double low = floor_of(limit(pair_of_turns(rotary, rotary->high_factor), 0, most));
    double high = -floor_of(-limit(pair_of_turns(rotary, rotary->low_factor), 0, most));
    if (high <= low)
        high = low + 0.001;
    const double ramp = limit(((double)pair - low) / (high - low), 0, 1);
    return f / rotary->factor * ramp + f * (1 - ramp);
}

static double llama3(const rapt_rotary *rotary, double f) {
    const double turns = rotary->original_length * f / TWO_PI;
    if (turns < rotary->low_factor)
        return f / rotary->factor;
    if (turns > rotary->high_factor)
        return f;
    const double smooth = (turns - rotary->low_factor) / (rotary->high_factor - rotary->low_factor);
    return (1 - smooth) * (f / rotary->factor) + smooth * f;
}

static double frequency_of(const rapt_rotary *rotary, int pair) {
    const double dim = (double)rotary->dim, power = 2.0 * pair / dim;
    double log2_base = log2_of(rotary->base);
    if (rotary->scaling == RAPT_ROTARY_NTK && dim > 2)
        log2_base += dim / (dim - 2) * log2_of(rotary->factor);
    const double f = exp2_of(limit(-power * log2_base, -1000, 0));
    switch (rotary->scaling) {
    case RAPT_ROTARY_LINEAR:
        return f / rotary->factor;
    case RAPT_ROTARY_YARN:
        return yarn(rotary, f, pair);
    case RAPT_ROTARY_LLAMA3:
        return llama3(rotary, f);
    default:
        return f;
    }
}

static double factor_of(const rapt_rotary *rotary) {
    if (rotary->attention_factor != 0)
        return rotary->attention_factor;
    return rotary->scaling == RAPT_ROTARY_YARN ? 0.1 * (log2_of(rotary->factor) * LN2) + 1 : 1;
}

void rapt_rotary_angles(const rapt_rotary *rotary, struct rapt_angles *angles) {
    angles->pairs = (int)(rotary->dim / 2);
    angles->factor = factor_of(rotary);
    for (int i = 0; i < angles->pairs; i++)
        angles->frequencies[i] = rotary->frequencies ? rotary->frequencies[i] : (float)frequency_of(rotary, i);
}
