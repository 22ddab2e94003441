/* SPDX-License-Identifier: MIT
 * Orders 2 and 3: queries, keys and values laid out for products of float32 vectors (unit_product.h). Those of order 3
 * come in three parts, one after the other. */
#ifndef RAPT_GENERIC_UNIT_PACK_H
#define RAPT_GENERIC_UNIT_PACK_H

#include "generic/unit_numbers.h"
#include "generic/unit_table.h"

/* ------------------------------------------------------------ queries */

RAPT_INLINE size_t unit_panel_bytes(int rows, int head_dim, int parts) {
    const size_t of_row = RAPT_SUM_LANES + (size_t)parts * (size_t)unit_up(head_dim, RAPT_HALF_KEYS);
    return (UNIT_HEAD + (size_t)unit_up(rows, UNIT_ROWS) * of_row) * sizeof(float);
}

size_t RAPT_UNIT(panel_bytes)(int rows, int head_dim) { return unit_panel_bytes(rows, head_dim, 1); }
size_t RAPT_UNIT(panel_bytes_split)(int rows, int head_dim) { return unit_panel_bytes(rows, head_dim, UNIT_PARTS); }

RAPT_INLINE void unit_pack(float *panel, const float *const *query_rows, int rows, int head_dim, int parts) {
    const int all_rows = unit_up(rows, UNIT_ROWS);
    const int64_t part = unit_query_part(rows, head_dim);
    float *into = unit_queries(panel, rows);
    struct unit_found found = unit_nothing_found();
    memset(into, 0, (size_t)parts * (size_t)part * sizeof(float));
    for (int d = 0; d < head_dim; d += VL) {
        float *column = into + (int64_t)(d / RAPT_HALF_KEYS) * all_rows * RAPT_HALF_KEYS + d % RAPT_HALF_KEYS;
        const int n = head_dim - d < VL ? head_dim - d : VL;
        for (int row = 0; row < rows; row++) {
            vf32 x[UNIT_PARTS] = {v_load_n(query_rows[row] + d, n)};
            if (parts == 1)
                x[0] = unit_look(&found, x[0], RAPT_FORMAT_BF16);
            else
                unit_split(x[0], x, &found);
            RAPT_UNROLL for (int i = 0; i < parts; i++)
                v_store_n(column + i * part + row * RAPT_HALF_KEYS, x[i], n);
        }
    }
    panel[0] = unit_finds(&found, 0x1p-56f) & RAPT_FOUND_NORMAL ? 1 : 0;
}

void RAPT_UNIT(pack)(float *panel, const float *const *query_rows, int rows, int head_dim) {
    unit_pack(panel, query_rows, rows, head_dim, 1);
}

void RAPT_UNIT(pack_split)(float *panel, const float *const *query_rows, int rows, int head_dim) {
    unit_pack(panel, query_rows, rows, head_dim, UNIT_PARTS);
}

/* ------------------------------------------------------------ keys, values */

/* Floats of one part of `count` packed keys or values. */
RAPT_INLINE int64_t unit_packed_part(int side, int count, int dim) {
    return (int64_t)unit_up(dim, side == RAPT_KEYS ? RAPT_STEP : UNIT_COLUMNS) * count;
}

size_t RAPT_UNIT(packed_bytes)(int side, int dim) {
    return (size_t)unit_packed_part(side, RAPT_HALF_KEYS, dim) * sizeof(float);
}

size_t RAPT_UNIT(packed_bytes_split)(int side, int dim) { return UNIT_PARTS * RAPT_UNIT(packed_bytes)(side, dim); }

/* Numbers [d, d + UNIT_COLUMNS) of VL keys, of which n exist, as rows of a panel of `columns` columns. Prefetches as
 * many bytes, unless ahead is NULL. */
RAPT_INLINE void unit_transpose(float *into, int columns, const char *const *rows, int d, int n, int format,
                                struct unit_found *found, struct unit_ahead *ahead) {
    enum { LINES = VL * UNIT_COLUMNS * 2 / 64 };
    uint16_t across[UNIT_COLUMNS * VL], rest[VL][UNIT_COLUMNS];
    const char *rests[VL];
    if (n < UNIT_COLUMNS)
        for (int i = 0; i < VL; i++) {
            copy_rest(rest[i], rows[i] + (size_t)d * sizeof(uint16_t), (size_t)n * sizeof(uint16_t));
            rests[i] = (const char *)rest[i];
        }
    const char *const *from = n < UNIT_COLUMNS ? rests : rows;
    const int at = n < UNIT_COLUMNS ? 0 : d * (int)sizeof(uint16_t);
    if (VL > 1 && format == RAPT_FORMAT_BF16) { /* as pairs */
        vf32 pairs[VL];
        RAPT_UNROLL for (int i = 0; i < VL; i++)
            pairs[i] = v_load((const float *)(const void *)(from[i] + at));
        v_transpose(pairs);
        RAPT_UNROLL for (int i = 0; i < VL; i++) {
            if (ahead && i * LINES % VL < LINES)
                unit_fetch(ahead);
            v_store(into + 2 * i * columns, unit_look(found, v_even_bf16(pairs[i]), format));
            v_store(into + (2 * i + 1) * columns, unit_look(found, v_odd_bf16(pairs[i]), format));
        }
        return;
    }
    v_transpose_shorts(across, from, at);
    for (int i = 0; i < UNIT_COLUMNS; i++) {
        if (ahead && i * LINES % UNIT_COLUMNS < LINES)
            unit_fetch(ahead);
        v_store(into + i * columns, unit_look(found, unit_load(across + i * VL, format), format));
    }
}

/* The same for float32, in parts `part` floats apart. */
RAPT_INLINE void unit_transpose_split(float *into, int64_t part, int columns, const char *const *rows, int d, int n,
                                      struct unit_found *found) {
    for (int at = 0; at < UNIT_COLUMNS; at += VL) {
        vf32 lanes[VL];
        const int left = n - at < 0 ? 0 : n - at;
        for (int i = 0; i < VL; i++) {
            const float *row = (const float *)(const void *)rows[i] + d + at;
            lanes[i] = left >= VL ? v_load(row) : left > 0 ? v_load_n(row, left) : v_splat(0);
        }
        v_transpose(lanes);
        for (int i = 0; i < VL; i++) {
            vf32 parts[UNIT_PARTS];
            unit_split(lanes[i], parts, found);
            RAPT_UNROLL for (int k = 0; k < UNIT_PARTS; k++)
                v_store(into + k * part + (at + i) * columns, parts[k]);
        }
    }
}

/* Numbers from d on of the next rows; each line about once. */
RAPT_INLINE void unit_prefetch(const char *const *rows, int count, int d, int format) {
    for (int i = 0; d % (64 / unit_bytes(format)) == 0 && i < count; i++)
        if (rows[i])
            fetch_soon(rows[i] + (size_t)d * (size_t)unit_bytes(format));
}

/* Panels of keys, [dim][UNIT_COLUMNS] each. */
RAPT_INLINE unsigned pack_keys_of(float *into, const char *const *rows, int count, int dim, int format) {
    struct unit_found found = unit_nothing_found();
    const int depth = unit_up(dim, RAPT_STEP);
    const int64_t part = unit_packed_part(RAPT_KEYS, count, dim);
    for (int key = 0; key < count; key += VL) {
        const char *from[VL];
        float *panel = into + (int64_t)(key / UNIT_COLUMNS) * depth * UNIT_COLUMNS + key % UNIT_COLUMNS;
        for (int i = 0; i < VL; i++)
            from[i] = rows[key + i] ? rows[key + i] : (const char *)unit_zeros;
        for (int d = 0; d < unit_up(dim, 4); d += UNIT_COLUMNS) {
            const int left = dim - d < 0 ? 0 : dim - d, n = left < UNIT_COLUMNS ? left : UNIT_COLUMNS;
            float *at = panel + (int64_t)d * UNIT_COLUMNS;
            unit_prefetch(rows + key + VL, count - key - VL < VL ? count - key - VL : VL, d, format);
            if (format == RAPT_FORMAT_F32)
                unit_transpose_split(at, part, UNIT_COLUMNS, from, d, n, &found);
            else
                unit_transpose(at, UNIT_COLUMNS, from, d, n, format, &found, NULL);
        }
    }
    return unit_finds(&found, 0x1p-56f);
}

static unsigned pack_some_keys(void *into, const char *const *rows, int count, int dim, int format) {
    return format == RAPT_FORMAT_F32   ? pack_keys_of(into, rows, count, dim, RAPT_FORMAT_F32)
           : format == RAPT_FORMAT_F16 ? pack_keys_of(into, rows, count, dim, RAPT_FORMAT_F16)
                                       : pack_keys_of(into, rows, count, dim, RAPT_FORMAT_BF16);
}

unsigned RAPT_UNIT(pack_keys)(void *into, const char *const *rows, int dim, int format) {
    return pack_some_keys(into, rows, RAPT_HALF_KEYS, dim, format);
}

/* Panels of values, [128 keys][UNIT_COLUMNS] each. */
RAPT_INLINE unsigned pack_values_of(float *into, const char *const *rows, int dim, int format) {
    struct unit_found found = unit_nothing_found();
    const int64_t part = unit_packed_part(RAPT_VALUES, RAPT_HALF_KEYS, dim);
    const size_t bytes = (size_t)unit_bytes(format);
    for (int d = 0; d < dim; d += UNIT_COLUMNS)
        for (int key = 0; key < RAPT_HALF_KEYS; key++, into += UNIT_COLUMNS) {
            const void *from = rows[key] ? rows[key] + (size_t)d * bytes : (const char *)unit_zeros;
            float rest[UNIT_COLUMNS] = {0};
            if (key + UNIT_AHEAD < RAPT_HALF_KEYS)
                unit_prefetch(rows + key + UNIT_AHEAD, 1, d, format);
            if (dim - d < UNIT_COLUMNS)
                from = memcpy(rest, from, (size_t)(dim - d) * bytes);
            RAPT_UNROLL for (int v = 0; v < 2; v++) {
                vf32 x[UNIT_PARTS];
                if (format == RAPT_FORMAT_F32)
                    unit_split(v_load((const float *)from + v * VL), x, &found);
                else
                    x[0] = unit_look(&found, unit_load((const uint16_t *)from + v * VL, format), format);
                RAPT_UNROLL for (int i = 0; i < unit_parts(format); i++)
                    v_store(into + i * part + v * VL, x[i]);
            }
        }
    return unit_finds(&found, format == RAPT_FORMAT_F32 ? 0x1p-56f : 0x1p-64f);
}

unsigned RAPT_UNIT(pack_values)(void *into, const char *const *rows, int dim, int format) {
    return format == RAPT_FORMAT_F32   ? pack_values_of(into, rows, dim, RAPT_FORMAT_F32)
           : format == RAPT_FORMAT_F16 ? pack_values_of(into, rows, dim, RAPT_FORMAT_F16)
                                       : pack_values_of(into, rows, dim, RAPT_FORMAT_BF16);
}

#endif
