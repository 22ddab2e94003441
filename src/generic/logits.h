/* SPDX-License-Identifier: MIT
 * From scaled dot products to base-2 logits: softcap, bias, ALiBi, fill and
 * exclusion, in the order of the ONNX operator Attention; and dropout. */
#ifndef RAPT_GENERIC_LOGITS_H
#define RAPT_GENERIC_LOGITS_H

#include "kernels.h"

/* What the lanes of one vector of scores need, whichever way they run. */
struct logit_lanes {
    vf32 bias, bias_factor;
    vf32 allowed; /* 1 or 0, the bool mask */
    vf32 alibi_factor, distance;
    vf32 key, first_key, end_key;
};

RAPT_INLINE vf32 logit(vf32 t, const struct rapt_tile_mask *mask, const struct logit_lanes *x) {
    vmask excluded = v_less(x->key, x->key);
    if (mask->softcap_log2e != 0)
        t = v_mul(v_splat(mask->softcap_log2e), v_tanh(t));
    if (mask->has_bias) {
        vf32 clamped = v_smaller(v_splat(0x1p126f), v_larger(v_splat(-0x1p126f), x->bias));
        vf32 bias = v_select(v_less(x->bias, v_splat(RAPT_INFINITY)), clamped, x->bias);
        t = v_fma(bias, x->bias_factor, t);
        excluded = v_equal(x->bias, v_splat(-RAPT_INFINITY));
    }
    if (mask->has_alibi)
        t = v_fma(x->alibi_factor, x->distance, t);
    if (mask->has_mask) {
        vmask allowed = v_less(v_splat(0), x->allowed);
        if (mask->has_fill)
            t = v_select(allowed, t, v_splat(mask->fill_log2e));
        else
            excluded = v_or(excluded, v_not(allowed));
    }
    if (mask->has_range)
        excluded = v_or(excluded, v_or(v_less(x->key, x->first_key), v_not(v_less(x->key, x->end_key))));
    return v_select(excluded, v_splat(-RAPT_INFINITY), t);
}

/* Beyond 2^24 a difference of floats is no longer the float of the difference. */
RAPT_INLINE int is_far(int64_t distance) { return distance > 16776000 || distance < -16776000; }

static float far_distance(int64_t distance) { return (float)(distance < 0 ? -distance : distance); }

RAPT_INLINE vf32 load_column_i32(const int32_t *rows, int n) {
    float lanes[VL] = {0};
    for (int i = 0; i < n; i++)
        lanes[i] = (float)rows[i];
    return v_load(lanes);
}

/* n <= VL bytes of each row as 1 or 0, transposed: vector k holds key k. */
RAPT_INLINE void load_flags(vf32 *lanes, const uint8_t *const *rows, int row_count, int key, int n) {
    for (int i = 0; i < VL; i++)
        lanes[i] = i < row_count ? v_select(v_load_bool(rows[i] + key, n), v_splat(1), v_splat(0)) : v_splat(0);
    v_transpose(lanes);
}

static vf32 column_distance(const int64_t *distance, int rows, int key) {
    float lanes[VL] = {0};
    for (int i = 0; i < rows; i++)
        lanes[i] = far_distance(distance[i] - key);
    return v_load(lanes);
}

/* VL rows, or what is left of them, against all keys. */
static void logits_column(float *scores, int row, int rows, int key_begin, int key_end,
                          const struct rapt_tile_mask *mask) {
    int far = 0;
    float distance[VL] = {0};
    for (int i = 0; mask->has_alibi && i < rows; i++) {
        far |= is_far(mask->distance[row + i]);
        distance[i] = (float)mask->distance[row + i];
    }
    struct logit_lanes x;
    vf32 start = v_load(distance);
    x.bias_factor = mask->has_bias ? v_load_n(mask->bias_factor + row, rows) : v_splat(0);
    x.alibi_factor = mask->has_alibi ? v_load_n(mask->alibi_factor + row, rows) : v_splat(0);
    x.first_key = load_column_i32(mask->first_key + row, rows);
    x.end_key = load_column_i32(mask->end_key + row, rows);
    for (int key = key_begin; key < key_end; key += VL) {
        int n = key_end - key < VL ? key_end - key : VL;
        vf32 bias[VL], allowed[VL];
        if (mask->has_bias)
            load_transposed(bias, mask->bias + row, rows, key, n);
        if (mask->has_mask)
            load_flags(allowed, mask->mask + row, rows, key, n);
        for (int k = 0; k < n; k++) {
            float *score = scores + (int64_t)(key + k) * TILE_ROWS + row;
            x.key = v_splat((float)(key + k));
            x.bias = mask->has_bias ? bias[k] : v_splat(0);
            x.allowed = mask->has_mask ? allowed[k] : v_splat(0);
            x.distance = far ? column_distance(mask->distance + row, rows, key + k) : v_abs(v_sub(start, x.key));
            v_store(score, logit(v_load(score), mask, &x));
        }
    }
}

static void logits_wide(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    for (int row = 0; row < rows; row += VL)
        logits_column(scores, row, rows - row < VL ? rows - row : VL, key_begin, key_end, mask);
}

static vf32 line_distance(int64_t distance, int key, int n) {
    float lanes[VL] = {0};
    for (int i = 0; i < n; i++)
        lanes[i] = far_distance(distance - (key + i));
    return v_load(lanes);
}

static void logits_line(float *scores, int row, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    struct logit_lanes x;
    int far = mask->has_alibi && is_far(mask->distance[row]);
    vf32 start = v_splat(mask->has_alibi ? (float)mask->distance[row] : 0);
    x.bias_factor = v_splat(mask->has_bias ? mask->bias_factor[row] : 0);
    x.alibi_factor = v_splat(mask->has_alibi ? mask->alibi_factor[row] : 0);
    x.first_key = v_splat((float)mask->first_key[row]);
    x.end_key = v_splat((float)mask->end_key[row]);
    for (int key = key_begin; key < key_end; key += VL) {
        int n = key_end - key < VL ? key_end - key : VL;
        x.key = v_add(v_splat((float)key), v_iota());
        x.bias = mask->has_bias ? v_load_n(mask->bias[row] + key, n) : v_splat(0);
        x.allowed = v_splat(0);
        if (mask->has_mask)
            x.allowed = v_select(v_load_bool(mask->mask[row] + key, n), v_splat(1), v_splat(0));
        x.distance = far ? line_distance(mask->distance[row], key, n) : v_abs(v_sub(start, x.key));
        v_store_n(scores + key, logit(v_load_n(scores + key, n), mask, &x), n);
    }
}

static void logits_narrow(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    for (int row = 0; row < rows; row++)
        logits_line(scores + (int64_t)row * RAPT_BLOCK_KEYS, row, key_begin, key_end, mask);
}

RAPT_INLINE vf32 dropped(vf32 p, vf32 keep, float keep_scale) {
    return v_select(v_less(v_splat(0), keep), v_mul(p, v_splat(keep_scale)), v_splat(0));
}

static void drop_wide(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    for (int row = 0; row < rows; row += VL)
        for (int key = key_begin; key < key_end; key += VL) {
            int n = key_end - key < VL ? key_end - key : VL;
            vf32 keep[VL];
            load_flags(keep, mask->keep + row, rows - row, key, n);
            for (int k = 0; k < n; k++) {
                float *p = scores + (int64_t)(key + k) * TILE_ROWS + row;
                v_store(p, dropped(v_load(p), keep[k], mask->keep_scale));
            }
        }
}

static void drop_narrow(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    for (int row = 0; row < rows; row++)
        for (int key = key_begin; key < key_end; key += VL) {
            int n = key_end - key < VL ? key_end - key : VL;
            float *p = scores + (int64_t)row * RAPT_BLOCK_KEYS + key;
            vf32 keep = v_select(v_load_bool(mask->keep[row] + key, n), v_splat(1), v_splat(0));
            v_store_n(p, dropped(v_load_n(p, n), keep, mask->keep_scale), n);
        }
}

#endif
