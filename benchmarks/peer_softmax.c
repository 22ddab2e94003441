/* SPDX-License-Identifier: MIT
 *
 * Compiled for this machine and with fast math, so that the compiler vectorises these loops. */
#include "peer.h"

/* x <= 0, to about 2 ulp: 2^n * e^r, |r| <= ln(2)/2, Taylor series for the latter. */
static inline float fast_exp(float x) {
    x = x > -87 ? x : -87;
    int32_t n = (int32_t)(x * 1.44269504f - 0.5f);
    float r = x - (float)n * 0.693147181f;
    float series =
        1 + r * (1 + r * (1 / 2.f + r * (1 / 6.f + r * (1 / 24.f + r * (1 / 120.f + r * (1 / 720.f))))));
    union {
        int32_t bits;
        float value;
    } power = {(n + 127) * (1 << 23)};
    return power.value * series;
}

/* Separate functions: clang does not vectorise these loops side by side. */
__attribute__((noinline)) static float maximum_of(const float *scores, int64_t count) {
    float maximum = scores[0];
    for (int64_t i = 1; i < count; i++)
        maximum = scores[i] > maximum ? scores[i] : maximum;
    return maximum;
}

__attribute__((noinline)) static float exp_all(float *scores, int64_t count, float maximum) {
    float sum = 0;
    for (int64_t i = 0; i < count; i++) {
        float power = fast_exp(scores[i] - maximum);
        scores[i] = power;
        sum += power;
    }
    return sum;
}

float peer_exp_row(float *scores, int64_t count) {
    return exp_all(scores, count, maximum_of(scores, count));
}
