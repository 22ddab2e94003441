/* SPDX-License-Identifier: MIT
 * Folding of partial states, the sink, the division, LSE, and the other
 * results that leave the library. */
#ifndef RAPT_GENERIC_FINISH_H
#define RAPT_GENERIC_FINISH_H

#include "assume.h"
#include "kernels.h"

RAPT_INLINE float first_lane(vf32 a) {
    float lanes[VL];
    v_store(lanes, a);
    return lanes[0];
}

static float s_pow2(float k) { return first_lane(v_pow2(v_splat(k))); }

static float s_alpha(float k) { return first_lane(unit_alpha(v_splat(k))); }

static float s_canonical(float a) { return a == a ? a + 0.0f : __builtin_nanf(""); }

RAPT_INLINE void merge_rows(struct rapt_state into, struct rapt_state next, int rows, int value_dim,
                            float (*power)(float)) {
    RAPT_ASSUME(rows >= 0 && value_dim >= 1 && into.o_stride >= value_dim && next.o_stride >= value_dim);
    RAPT_ASSUME(into.o_stride % 16 == 0 && next.o_stride % 16 == 0);
    for (int row = 0; row < rows; row++) {
        float *o = into.o + row * into.o_stride;
        const float *o_next = next.o + row * next.o_stride;
        if (next.l[row] == 0)
            continue;
        if (into.l[row] == 0) {
            into.m[row] = next.m[row];
            into.l[row] = next.l[row];
            memcpy(o, o_next, (size_t)value_dim * sizeof(float));
            continue;
        }
        float m = next.m[row] > into.m[row] ? next.m[row] : into.m[row];
        float weight = power(into.m[row] - m), weight_next = power(next.m[row] - m);
        into.m[row] = m;
        into.l[row] = s_fma(next.l[row], weight_next, into.l[row] * weight);
        for (int d = 0; d < value_dim; d += VL)
            v_store(o + d, v_fma(v_load(o_next + d), v_splat(weight_next), v_mul(v_load(o + d), v_splat(weight))));
    }
}

static void merge(struct rapt_state into, struct rapt_state next, int rows, int value_dim) {
    merge_rows(into, next, rows, value_dim, s_pow2);
}

/* Joins the sink to m and l; returns the factor for o. */
static float join_sink(float sink_log2e, float *m, float *l) {
    if (sink_log2e == -RAPT_INFINITY)
        return 1.0f;
    float after = first_lane(v_even_maximum(v_splat(sink_log2e), v_splat(*m)));
    float alpha = s_pow2(*m - after);
    float p;
    exponentials(&sink_log2e, &p, 1, after);
    *l = *l * alpha + p;
    *m = after;
    return alpha;
}

/* The same of order 2. */
static inline float join_sink_unit(float sink_log2e, float *m, float *l) {
    const float after = sink_log2e > *m ? sink_log2e : *m, alpha = s_alpha(*m - after);
    *l = *l * alpha + s_alpha(sink_log2e - after);
    *m = after;
    return alpha;
}

RAPT_INLINE vf32 scaled(vf32 x, float first_factor, float factor, int twice) {
    return v_canonical(v_mul(twice ? v_mul(x, v_splat(first_factor)) : x, v_splat(factor)));
}

/* Stores n lanes as numbers i ... i + n - 1 of a row. */
RAPT_INLINE void store_numbers(char *row, int64_t i, vf32 a, int n, int format) {
    uint16_t rest[VL], *narrow = n == VL ? (uint16_t *)(void *)row + i : rest;
    if (format == RAPT_FORMAT_F32 && n == VL)
        v_store((float *)(void *)row + i, a);
    else if (format == RAPT_FORMAT_F32)
        v_store_n((float *)(void *)row + i, a, n);
    else if (format == RAPT_FORMAT_F16)
        v_store_f16(narrow, a);
    else
        v_store_bf16(narrow, a);
    if (format != RAPT_FORMAT_F32 && n < VL)
        memcpy(row + i * (int64_t)sizeof *rest, rest, (size_t)n * sizeof *rest);
}

/* in * first_factor * factor, or in * factor. */
RAPT_INLINE void export_lanes(const float *in, char *out, int format, int64_t count, float first_factor, float factor,
                              int twice) {
    int64_t i = 0;
    for (; count - i >= VL; i += VL)
        store_numbers(out, i, scaled(v_load(in + i), first_factor, factor, twice), VL, format);
    if (i < count) {
        const int n = (int)(count - i);
        store_numbers(out, i, scaled(v_load_n(in + i, n), first_factor, factor, twice), n, format);
    }
}

/* twice: whether first_factor may be other than 1. */
RAPT_INLINE void export_scaled(const float *in, char *out, int format, int64_t count, float first_factor, float factor,
                               int twice) {
    if (format == RAPT_FORMAT_F32 && !twice)
        export_lanes(in, out, RAPT_FORMAT_F32, count, first_factor, factor, 0);
    else if (format == RAPT_FORMAT_F32)
        export_lanes(in, out, RAPT_FORMAT_F32, count, first_factor, factor, 1);
    else if (format == RAPT_FORMAT_F16)
        export_lanes(in, out, RAPT_FORMAT_F16, count, first_factor, factor, 1);
    else
        export_lanes(in, out, RAPT_FORMAT_BF16, count, first_factor, factor, 1);
}

static void export_row(const float *in, float *out, int64_t count, float factor) {
    export_scaled(in, (char *)out, RAPT_FORMAT_F32, count, 1.0f, factor, 0);
}

RAPT_INLINE void finish_rows(const struct rapt_finish_args *a, float (*join)(float, float *, float *)) {
    RAPT_ASSUME(a->rows >= 0 && a->rows <= RAPT_MAX_TILE_ROWS && a->value_dim >= 1);
    RAPT_ASSUME(a->state.o_stride % 16 == 0 && a->state.o_stride >= a->value_dim);
    for (int row = 0; row < a->rows; row++) {
        float m = a->state.m[row], l = a->state.l[row];
        float *lse = a->lse ? (float *)(void *)a->lse[row] : NULL;
        a->final_m[row] = a->inverse[row] = 0;
        if (l == 0) {
            if (lse)
                *lse = -RAPT_INFINITY;
            if (a->out)
                memset(a->out[row], 0, (size_t)rapt_format_row_bytes(a->out_format, a->value_dim));
            continue;
        }
        if (lse)
            *lse = s_canonical(s_fma(m, RAPT_LN2, s_log2(l) * RAPT_LN2));
        float alpha = a->sink_log2e ? join(a->sink_log2e[row], &m, &l) : 1.0f;
        float inverse = 1.0f / l;
        if (a->out)
            export_scaled(a->state.o + row * a->state.o_stride, a->out[row], a->out_format, a->value_dim, alpha,
                          inverse, a->sink_log2e != NULL);
        a->final_m[row] = m;
        a->inverse[row] = inverse;
    }
}

static void finish(const struct rapt_finish_args *a) { finish_rows(a, join_sink); }

/* Whether m and l can be the maximum and sum of a row with keys: m as step 4 leaves it, l as step 9 takes it. */
static int is_state(float m, float l) {
    const float even = first_lane(v_ceil(v_splat(m * 0.5f))) * 2.0f;
    return l >= 0x1p-126f && m == even && m - m == 0;
}

/* Any maximum will do in order 2. */
static inline int is_state_unit(float m, float l) { return l >= 0x1p-126f && m - m == 0; }

RAPT_INLINE void load_rows(struct rapt_state into, char *const *rows, int count, int value_dim,
                           int (*is_legal)(float, float)) {
    RAPT_ASSUME(count >= 0 && value_dim >= 1 && into.o_stride % 16 == 0 && into.o_stride >= value_dim);
    for (int row = 0; row < count; row++) {
        const float *state = (const float *)(const void *)rows[row], m = state[0], l = state[1];
        into.m[row] = l == 0 ? -RAPT_INFINITY : m;
        into.l[row] = l == 0 ? 0 : is_legal(m, l) ? l : __builtin_nanf("");
        memcpy(into.o + row * into.o_stride, state + 2, (size_t)value_dim * sizeof(float));
    }
}

static void load_states(struct rapt_state into, char *const *rows, int count, int value_dim) {
    load_rows(into, rows, count, value_dim, is_state);
}

/* Canonical: signs of zeros differ between ISAs. */
static void store_states(struct rapt_state from, char *const *rows, int count, int value_dim) {
    RAPT_ASSUME(count >= 0 && value_dim >= 1 && from.o_stride >= value_dim);
    for (int row = 0; row < count; row++) {
        const bool is_empty = from.l[row] == 0;
        float *state = (float *)(void *)rows[row];
        state[0] = is_empty ? -RAPT_INFINITY : s_canonical(from.m[row]);
        state[1] = is_empty ? 0 : s_canonical(from.l[row]);
        if (is_empty)
            memset(state + 2, 0, (size_t)value_dim * sizeof(float));
        else
            export_row(from.o + row * from.o_stride, state + 2, value_dim, 1.0f);
    }
}

/* 0 * x is NaN unless x is finite, and NaN stays in a sum. */
static bool all_finite(const char *base, int64_t stride_bytes, int64_t rows, int count) {
    vf32 sum[4] = {v_splat(0), v_splat(0), v_splat(0), v_splat(0)};
    RAPT_ASSUME(rows >= 0 && count >= 1);
    for (int64_t row = 0; row < rows; row++, base += stride_bytes) {
        const float *x = (const float *)(const void *)base;
        int i = 0;
        for (; count - i >= 4 * VL; i += 4 * VL)
            RAPT_UNROLL for (int v = 0; v < 4; v++)
                sum[v] = v_fma(v_load(x + i + v * VL), v_splat(0), sum[v]);
        for (; i < count; i += VL)
            sum[0] = v_fma(count - i < VL ? v_load_n(x + i, count - i) : v_load(x + i), v_splat(0), sum[0]);
    }
    vf32 all = v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
    return !v_any(v_not(v_equal(all, all)));
}

static void tanhs(const float *x, float *y, int64_t count) {
    for (int64_t i = 0; i < count; i += VL) {
        int n = count - i < VL ? (int)(count - i) : VL;
        v_store_n(y + i, v_tanh(v_load_n(x + i, n)), n);
    }
}

static void log2s(const float *x, float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        y[i] = s_log2(x[i]);
}

/* ---- order 2 */

#ifndef RAPT_WITHOUT_UNITS
static void merge_unit(struct rapt_state into, struct rapt_state next, int rows, int value_dim) {
    merge_rows(into, next, rows, value_dim, s_alpha);
}

static void finish_unit(const struct rapt_finish_args *a) { finish_rows(a, join_sink_unit); }

static void load_states_unit(struct rapt_state into, char *const *rows, int count, int value_dim) {
    load_rows(into, rows, count, value_dim, is_state_unit);
}
#endif

#endif
