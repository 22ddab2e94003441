/* SPDX-License-Identifier: MIT
 * float32 rows to rows of float8 and int8 (docs/numerics.md, stored numbers): numbers are divided by the scale of their
 * group, which is given, or computed and written. */
#ifndef RAPT_GENERIC_QUANTISE_SCALED_H
#define RAPT_GENERIC_QUANTISE_SCALED_H

#include "assume.h"
#include "generic/exp2.h"
#include "generic/stored.h"

/* The largest number of a format; of int8 the largest of both signs. */
RAPT_INLINE float most_of(int format) {
    return format == RAPT_FORMAT_F8_E4M3 ? 448 : format == RAPT_FORMAT_F8_E5M2 ? 57344 : 127;
}

/* Codes of VL numbers. Numbers too large saturate; NaN gets its code, in int8 the zero point. */
RAPT_INLINE void put_codes(int format, char *into, vf32 numbers, struct stored_scale by) {
    uint8_t *bytes = (uint8_t *)into;
    const vf32 t = v_div(numbers, by.scale), rounder = v_splat(RAPT_ROUND_MAGIC);
    const vf32 most = v_splat(format == RAPT_FORMAT_I8 ? 256 : most_of(format));
    const vf32 within = v_with_sign(v_smaller(v_abs(t), most), t);
    const vmask is_number = v_equal(t, t);
    if (format == RAPT_FORMAT_F8_E4M3) {
        v_store_e4m3(bytes, v_select(is_number, within, v_splat(480)));
    } else if (format == RAPT_FORMAT_F8_E5M2) {
        v_store_e5m2(bytes, v_select(is_number, within, v_splat(98304)));
    } else {
        const vf32 nearest = v_sub(v_add(v_select(is_number, within, v_splat(0)), rounder), rounder);
        const vf32 code = v_add(nearest, by.zero_point);
        v_store_byte(bytes, v_smaller(v_larger(code, v_splat(-128)), v_splat(127)));
    }
}

RAPT_INLINE void put_group(int format, char *into, const float *from, int count, struct stored_scale by) {
    char rest[VL];
    int d = 0;
    for (; count - d >= VL; d += VL)
        put_codes(format, into + d, v_load(from + d), by);
    if (d < count) {
        put_codes(format, rest, v_load_n(from + d, count - d), by);
        memcpy(into + d, rest, (size_t)(count - d));
    }
}

/* The largest number of a group and the magnitude of the least, both >= 0; whether all are finite. */
struct group_range {
    float up, down;
    bool finite;
};

RAPT_INLINE struct group_range group_range_of(const float *x, int count) {
    vf32 up = v_splat(0), down = v_splat(0);
    vmask finite = v_equal(up, up);
    for (int d = 0; d < count; d += VL) {
        const vf32 a = count - d >= VL ? v_load(x + d) : v_load_n(x + d, count - d);
        up = v_larger(a, up);
        down = v_larger(v_sub(v_splat(0), a), down);
        finite = v_and(finite, v_less(v_abs(a), v_splat(RAPT_INFINITY)));
    }
    return (struct group_range){s_largest(up), s_largest(down), !v_any(v_not(finite))};
}

/* A group's stored scale: NaN if a number is not finite or the range overflows; 0 if all numbers are 0, or too small
 * for a scale. */
struct group_scale {
    float scale;
    int zero_point;
};

RAPT_INLINE struct group_scale group_scale_of(int format, const float *x, int count, bool shifts) {
    const struct group_range range = group_range_of(x, count);
    const float largest = range.up > range.down ? range.up : range.down;
    const float scale = shifts ? (range.up + range.down) / 255 : largest / most_of(format);
    if (!range.finite || scale == RAPT_INFINITY)
        return (struct group_scale){__builtin_nanf(""), 0};
    if (!shifts || scale == 0)
        return (struct group_scale){scale, 0};
    const float steps = range.down / scale, below = steps < 255 ? steps : 255;
    return (struct group_scale){scale, (int)(below + RAPT_ROUND_MAGIC - RAPT_ROUND_MAGIC) - 128};
}

/* Group number `group` of a row, numbers [d, end). */
RAPT_INLINE void store_group(int format, const struct rapt_store_args *a, int d, int end, int64_t group) {
    if (a->computes) {
        const struct group_scale by = group_scale_of(format, a->from + d, end - d, a->zero_points);
        a->scales[group] = by.scale;
        if (a->zero_points)
            a->zero_points[group] = (int8_t)by.zero_point;
        if (!(by.scale > 0)) {
            memset(a->into + d, 0, (size_t)(end - d));
            return;
        }
    }
    const struct rapt_scales scales = {.scales = a->scales, .zero_points = a->zero_points};
    put_group(format, a->into + d, a->from + d, end - d, stored_scale_of(&scales, 0, group));
}

RAPT_INLINE void store_scaled(int format, const struct rapt_store_args *a) {
    const int step = a->group && a->group < a->dim ? (int)a->group : a->dim;
    RAPT_ASSUME(a->scales || !a->computes);
    for (int d = 0, group = 0; d < a->dim; d += step, group++)
        store_group(format, a, d, a->dim - d < step ? a->dim : d + step, group);
}

static void store_f8_e4m3(const struct rapt_store_args *a) { store_scaled(RAPT_FORMAT_F8_E4M3, a); }
static void store_f8_e5m2(const struct rapt_store_args *a) { store_scaled(RAPT_FORMAT_F8_E5M2, a); }
static void store_i8(const struct rapt_store_args *a) { store_scaled(RAPT_FORMAT_I8, a); }

#endif
