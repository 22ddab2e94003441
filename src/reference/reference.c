/* SPDX-License-Identifier: MIT
 *
 * Order 1 of docs/numerics.md, and its specification: every operation below is
 * one float32 operation, in the order in which it decides the bits. Nothing is
 * shared with the rest of the library. Compile without contraction.
 */
#include "reference/reference.h"

#include <float.h>
#include <math.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "the numeric order needs IEEE arithmetic: build without -ffast-math"
#endif

/* Calling fmaf takes ten times as long as the instruction. */
#define WITH_FMA RAPT_REFERENCE_ALSO_FOR("fma")

static const float ln2 = 0x1.62e43p-1f;

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float rapt_reference_export(float x) {
    return x != x ? float_of(0x7fc00000u) : x + 0.0f;
}

/* Step 1: the dot product. */

WITH_FMA float rapt_reference_dot(const float *query, const float *key, int64_t head_dim) {
    float s = 0.0f;
    for (int64_t d = 0; d < head_dim; d++) {
        s = fmaf(query[d], key[d], s);
    }
    return s;
}

/* Step 2: the base-2 logit. */

WITH_FMA float rapt_reference_tanh(float x) {
    float a = fabsf(x);
    a = 10.0f < a ? 10.0f : a;
    float y = a * 0x1.715476p+1f;
    float M = 12583039.0f;
    float u = y + M;
    float n = u - M;
    float r = y - n;
    float e = float_of(bits_of(u) << 23);
    float q = 0x1.425ac8p-13f;
    q = fmaf(q, r, 0x1.5f5af4p-10f);
    q = fmaf(q, r, 0x1.3b2db4p-7f);
    q = fmaf(q, r, 0x1.c6aecap-5f);
    q = fmaf(q, r, 0x1.ebfbd6p-3f);
    q = fmaf(q, r, 0x1.62e43p-1f);
    q = q * r;
    float w = fmaf(q, e, e - 1.0f);
    float z = w / (w + 2.0f);
    return float_of(bits_of(z) | (bits_of(x) & 0x80000000u));
}

float rapt_reference_logit(float score, const struct rapt_reference_pair *pair, bool *attended) {
    float t = score;
    *attended = true;
    if (pair->softcap_log2e != 0.0f) {
        t = pair->softcap_log2e * rapt_reference_tanh(score);
    }
    if (pair->has_bias) {
        float b = pair->bias;
        if (b == -INFINITY) {
            *attended = false;
        } else if (b != INFINITY) {
            b = b > 0x1p+126f ? 0x1p+126f : b;
            b = b < -0x1p+126f ? -0x1p+126f : b;
        }
        t = fmaf(b, pair->bias_factor, t);
    }
    if (pair->has_alibi) {
        int64_t distance = pair->distance < 0 ? -pair->distance : pair->distance;
        t = fmaf(pair->alibi_factor, (float)distance, t);
    }
    if (pair->has_mask && !pair->mask) {
        if (pair->has_fill) {
            t = pair->fill_log2e;
        } else {
            *attended = false;
        }
    }
    return t;
}

/* Steps 4 to 6: one block of a chunk. */

float rapt_reference_even_maximum(float m, float t) {
    float e = ceilf(t * 0.5f) * 2.0f;
    return e > m ? e : m;
}

WITH_FMA float rapt_reference_exp2(float t, float m) {
    float m_use = m == -INFINITY ? 0.0f : m;
    bool guarded = fabsf(m_use) >= 0x1p+22f;
    float base = guarded ? 0.0f : m_use;
    float y = guarded ? t - m_use : t;
    float lo = base - 126.0f;
    float x = lo > y ? lo : y;
    float M = 12583038.0f - base;
    float u = x + M;
    float n = u - M;
    float r = x - n;
    float P = 0x1.425ac8p-12f;
    P = fmaf(P, r, 0x1.5f5af4p-9f);
    P = fmaf(P, r, 0x1.3b2db4p-6f);
    P = fmaf(P, r, 0x1.c6aecap-4f);
    P = fmaf(P, r, 0x1.ebfbd6p-2f);
    P = fmaf(P, r, 0x1.62e43p+0f);
    P = fmaf(P, r, 0x1p+1f);
    return P * float_of(bits_of(u) << 23);
}

float rapt_reference_pow2(float k) {
    k = k > -127.0f ? k : -127.0f;
    float u = k + 12583039.0f;
    return float_of(bits_of(u) << 23);
}

float rapt_reference_softmax(struct rapt_reference_state *state, const float *t, const bool *attended,
                             float *p, int64_t keys) {
    float highest = -INFINITY;
    for (int64_t j = 0; j < keys; j++) {
        if (attended[j]) {
            highest = t[j] > highest ? t[j] : highest;
        }
    }
    float m = rapt_reference_even_maximum(state->m, highest);
    float alpha = rapt_reference_pow2(state->m - m);
    float l = state->l * alpha;
    for (int64_t j = 0; j < keys; j++) {
        p[j] = 0.0f;
        if (attended[j]) {
            p[j] = rapt_reference_exp2(t[j], m);
            l = l + p[j];
        }
    }
    state->m = m;
    state->l = l;
    return alpha;
}

WITH_FMA void rapt_reference_weigh(float *o, float alpha, const float *p, const bool *attended, const char *value,
                                   int64_t value_stride_bytes, int64_t keys, int64_t value_dim) {
    for (int64_t d = 0; d < value_dim; d++) {
        o[d] = o[d] * alpha;
    }
    for (int64_t j = 0; j < keys; j++) {
        if (attended[j]) {
            const float *v = (const float *)(const void *)(value + j * value_stride_bytes);
            for (int64_t d = 0; d < value_dim; d++) {
                o[d] = fmaf(p[j], v[d], o[d]);
            }
        }
    }
}

/* Step 7: chunks fold left to right. */

void rapt_reference_fold_by(struct rapt_reference_state *into, const struct rapt_reference_state *next,
                            int64_t value_dim, float (*power)(float k)) {
    if (next->l == 0.0f) {
        return;
    }
    if (into->l == 0.0f) {
        into->m = next->m;
        into->l = next->l;
        memcpy(into->o, next->o, (size_t)value_dim * sizeof(float));
        return;
    }
    float m = next->m > into->m ? next->m : into->m;
    float weight_into = power(into->m - m);
    float weight_next = power(next->m - m);
    into->l = fmaf(next->l, weight_next, into->l * weight_into);
    for (int64_t d = 0; d < value_dim; d++) {
        into->o[d] = fmaf(next->o[d], weight_next, into->o[d] * weight_into);
    }
    into->m = m;
}

void rapt_reference_fold(struct rapt_reference_state *into, const struct rapt_reference_state *next,
                         int64_t value_dim) {
    rapt_reference_fold_by(into, next, value_dim, rapt_reference_pow2);
}

/* States. */

void rapt_reference_load_state(struct rapt_reference_state *into, const float *row, int64_t value_dim) {
    into->m = row[0];
    into->l = row[1];
    memcpy(into->o, row + 2, (size_t)value_dim * sizeof(float));
    if (into->l == 0.0f) {
        into->m = -INFINITY;
        into->l = 0.0f;
    } else if (!(into->l >= FLT_MIN && isfinite(into->m) && fmodf(into->m, 2.0f) == 0.0f)) {
        into->l = NAN;
    }
}

void rapt_reference_store_state(const struct rapt_reference_state *state, float *row, int64_t value_dim) {
    bool is_empty = state->l == 0.0f;
    row[0] = is_empty ? -INFINITY : rapt_reference_export(state->m);
    row[1] = is_empty ? 0.0f : rapt_reference_export(state->l);
    for (int64_t d = 0; d < value_dim; d++) {
        row[2 + d] = is_empty ? 0.0f : rapt_reference_export(state->o[d]);
    }
}

/* Step 8: sink and finish. */

void rapt_reference_sink(struct rapt_reference_state *state, float sink_log2e, int64_t value_dim) {
    if (state->l == 0.0f) {
        return;
    }
    float m = rapt_reference_even_maximum(state->m, sink_log2e);
    float alpha = rapt_reference_pow2(state->m - m);
    for (int64_t d = 0; d < value_dim; d++) {
        state->o[d] = state->o[d] * alpha;
    }
    state->l = state->l * alpha + rapt_reference_exp2(sink_log2e, m);
    state->m = m;
}

float rapt_reference_finish(const struct rapt_reference_state *state, float *out, int64_t value_dim) {
    float inverse = state->l == 0.0f ? 0.0f : 1.0f / state->l;
    for (int64_t d = 0; d < value_dim; d++) {
        out[d] = state->l == 0.0f ? 0.0f : rapt_reference_export(state->o[d] * inverse);
    }
    return inverse;
}

/* Step 9: the log-sum-exp. */

float rapt_reference_log2(float l) {
    uint32_t bits = bits_of(l);
    int32_t k = (int32_t)(bits - 0x3f3504f3u) >> 23;
    float f = float_of(bits - ((uint32_t)k << 23));
    float z = f - 1.0f;
    float s = z / (z + 2.0f);
    float w = s * s;
    float P = 0x1.484b14p-2f;
    P = fmaf(P, w, 0x1.a61762p-2f);
    P = fmaf(P, w, 0x1.2776c6p-1f);
    P = fmaf(P, w, 0x1.ec709ep-1f);
    P = fmaf(P, w, 0x1.715476p+1f);
    float result = fmaf(s, P, (float)k);
    return l < INFINITY ? result : l;
}

float rapt_reference_lse(float m, float l) {
    return l == 0.0f ? -INFINITY : rapt_reference_export(fmaf(m, ln2, rapt_reference_log2(l) * ln2));
}

/* Step 10: the constants. */

float rapt_reference_alibi_slope(int64_t head, int64_t heads) {
    int64_t n = 1;
    while (2 * n <= heads) {
        n = 2 * n;
    }
    float numerator = head < n ? -8.0f * (float)(head + 1) : -4.0f * (float)(2 * (head - n) + 1);
    return rapt_reference_exp2(numerator / (float)n, 0.0f);
}
