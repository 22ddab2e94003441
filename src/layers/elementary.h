/* SPDX-License-Identifier: MIT
 * Functions of one number that layers need besides attention. They compute in
 * double with +, -, *, / alone, in the order written here and without fused
 * operations, so every machine gives the same double; rounded to float the
 * results are within 0.51 ulp (tests/layers/elementary.c). Loops over them become
 * vector code. */
#ifndef RAPT_LAYERS_ELEMENTARY_H
#define RAPT_LAYERS_ELEMENTARY_H

#include <stdint.h>
#include <string.h>

/* e^x = power * (1 + p) with power = 2^n and p = e^r - 1, |r| <= ln(2)/2, by
 * the Taylor series to degree 11 (relative error below 1e-13). */
struct rapt_exp_parts {
    double power, p;
};

static inline struct rapt_exp_parts rapt_exp_split(double x) {
    const double magic = 0x1.8p52; /* leaves the integer part in the low bits */
    x = x > 708 ? 708 : x;
    x = x < -708 ? -708 : x; /* NaN stays */
    double u = x * 0x1.71547652b82fep+0 + magic;
    double n = u - magic;
    double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33; /* ln(2) in two parts, the first exact times n */
    double p = 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    bits = (bits + 1023) << 52;
    struct rapt_exp_parts parts = {0, p * r};
    memcpy(&parts.power, &bits, sizeof bits);
    return parts;
}

/* e^x; 0 below -708, where double would be denormal, and infinity above 708. */
static inline double rapt_exp(double x) {
    struct rapt_exp_parts e = rapt_exp_split(x);
    double y = e.power + e.power * e.p;
    y = x > 708 ? __builtin_inf() : y;
    return x < -708 ? 0 : y;
}

/* tanh |x| = t / (t + 2) with t = e^(2|x|) - 1. */
static inline double rapt_tanh(double x) {
    double a = __builtin_fabs(x);
    struct rapt_exp_parts e = rapt_exp_split(a > 22 ? 44 : 2 * a);
    double t = e.power * e.p + (e.power - 1);
    return __builtin_copysign(t / (t + 2), x);
}

static inline double rapt_sigmoid(double x) { return 1 / (1 + rapt_exp(-x)); }

/* The normal distribution: erfc(a / sqrt(2)) / 2 at |x|, with erfc(a) = e^(-a^2)
 * * t * P(s), t = 1/(1 + a/2), s = t mapped from [1/6, 1] to [-1, 1], P of
 * degree 12 through Chebyshev's points: relative error 2.9e-10 up to a = 10,
 * beyond which floats of x * Phi(-x) are 0. */
static inline double rapt_phi(double x) {
    static const double c[13] = {0x1.24dec0f1d6416p-1,   0x1.4e0d46b762b83p-2,   0x1.a1e9fade3af09p-4,
                                 0x1.86c0cc2d102a7p-8,   -0x1.9350f7b927a96p-8,  -0x1.43aaab38e89d5p-11,
                                 0x1.388649de43564p-11,  -0x1.8c2cf348542aep-21, -0x1.15174f6888b8fp-14,
                                 0x1.999ab0ab3a169p-17,  0x1.6c304bde176b8p-18,  -0x1.120253bcfa041p-19,
                                 -0x1.f7ab617e2d510p-24};
    double a = __builtin_fabs(x) * 0x1.6a09e667f3bcdp-1;
    double t = 1 / (1 + 0.5 * a);
    double s = t * 2.4 - 1.4;
    double q = c[12];
    for (int i = 11; i >= 0; i--)
        q = q * s + c[i];
    q = 0.5 * t * q * rapt_exp(-a * a);
    return x < 0 ? q : 1 - q;
}

static inline double rapt_gelu(double x) { return x * rapt_phi(x); }

/* x/2 * (1 + tanh(u)) = x * sigmoid(2u) */
static inline double rapt_gelu_tanh(double x) {
    return x * rapt_sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x));
}

#endif
