/* SPDX-License-Identifier: MIT
 * From scaled dot products to base-2 logits: softcap, bias, ALiBi, fill and exclusion, in the order of the ONNX
 * operator Attention; and dropout. A wide tile applies them one after the other, per vector of rows, so that each costs
 * only its own work. */
#ifndef RAPT_GENERIC_LOGITS_H
#define RAPT_GENERIC_LOGITS_H

#include "generic/score.h"

RAPT_INLINE vf32 with_softcap(vf32 t, vf32 softcap_log2e) { return v_mul(softcap_log2e, v_tanh(t)); }

/* Finite biases are clamped first, so that masks of -FLT_MAX do not overflow. */
RAPT_INLINE vf32 with_bias(vf32 t, vf32 bias, vf32 factor) {
    vf32 limited = v_smaller(v_splat(0x1p126f), v_larger(v_splat(-0x1p126f), bias));
    return v_fma(v_select(v_less(bias, v_splat(RAPT_INFINITY)), limited, bias), factor, t);
}

/* A bias of -infinity excludes, whatever else acts. */
RAPT_INLINE vf32 without_biased(vf32 t, vf32 bias) {
    return v_select(v_equal(bias, v_splat(-RAPT_INFINITY)), v_splat(-RAPT_INFINITY), t);
}

/* Beyond 2^24 a difference of floats is not the float of the difference. */
RAPT_INLINE int is_far(int64_t distance) { return distance > 16776000 || distance < -16776000; }

static float far_distance(int64_t distance) { return (float)(distance < 0 ? -distance : distance); }

static float of_false(const struct rapt_tile_mask *mask) {
    return mask->parts & RAPT_PART_FILL ? mask->fill_log2e : -RAPT_INFINITY;
}

/* Whether a later part could undo the bias's exclusion: a fill does, while an FMA with finite factors, as in ALiBi,
 * keeps -infinity. */
static bool bias_acts_again(const struct rapt_tile_mask *mask) {
    const unsigned parts = RAPT_PART_BIAS | RAPT_PART_MASK | RAPT_PART_FILL;
    return (mask->parts & parts) == parts;
}

/* ---- wide: VL rows, or what is left of them, against a run of keys */

struct column {
    float *scores; /* of its first row at key 0 of the block */
    int row, rows, key_begin, key_end;
};

RAPT_INLINE float *column_at(const struct column *c, int key) { return c->scores + (int64_t)key * TILE_ROWS; }

static void softcap_column(const struct column *c, float softcap_log2e) {
    for (int key = c->key_begin; key < c->key_end; key++)
        v_store(column_at(c, key), with_softcap(v_load(column_at(c, key)), v_splat(softcap_log2e)));
}

/* Neither clamped nor excluded: 4 * bias would be infinite or NaN, and NaN propagates. */
RAPT_INLINE bool are_ordinary(const vf32 *bias) {
    vf32 spread[4] = {v_splat(0), v_splat(0), v_splat(0), v_splat(0)};
    RAPT_UNROLL for (int k = 0; k < VL; k++)
        spread[k % 4] = v_fma(v_mul(bias[k], v_splat(4)), v_splat(0), spread[k % 4]);
    spread[0] = v_add(v_add(spread[0], spread[1]), v_add(spread[2], spread[3]));
    return !v_any(v_not(v_equal(spread[0], spread[0])));
}

/* n keys; excluding: repeats only the exclusion. */
static RAPT_KERNEL void bias_part(const struct column *c, const struct rapt_tile_mask *mask, vf32 factor, int key,
                                  int n, bool excluding) {
    vf32 bias[VL];
    load_transposed(bias, mask->bias + c->row, c->rows, key, n);
    for (int k = 0; k < n; k++) {
        float *score = column_at(c, key + k);
        vf32 t = v_load(score);
        v_store(score, without_biased(excluding ? t : with_bias(t, bias[k], factor), bias[k]));
    }
}

/* VL keys of VL rows, if all are ordinary; the constant count keeps them in registers. */
RAPT_INLINE bool bias_square(const struct column *c, const struct rapt_tile_mask *mask, vf32 factor, int key) {
    float *score = column_at(c, key);
    vf32 bias[VL];
    v_load_square(bias, mask->bias + c->row, key);
    const bool ordinary = are_ordinary(bias);
    if (ordinary)
        RAPT_UNROLL for (int k = 0; k < VL; k++)
            v_store(score + k * TILE_ROWS, v_fma(bias[k], factor, v_load(score + k * TILE_ROWS)));
    return ordinary;
}

static void bias_column(const struct column *c, const struct rapt_tile_mask *mask, bool excluding) {
    vf32 factor = v_load_n(mask->bias_factor + c->row, c->rows);
    for (int key = c->key_begin; key < c->key_end; key += VL) {
        int n = c->key_end - key < VL ? c->key_end - key : VL;
        if (excluding || n < VL || c->rows < VL || !bias_square(c, mask, factor, key))
            bias_part(c, mask, factor, key, n, excluding);
    }
}

/* Offset of a key from key 0 of the block. */
RAPT_INLINE int place_of(const struct rapt_tile_mask *mask, int key) { return mask->selected ? mask->place[key] : key; }

static vf32 column_distance(const int64_t *distance, int rows, int place) {
    float lanes[VL] = {0};
    for (int i = 0; i < rows; i++)
        lanes[i] = far_distance(distance[i] - place);
    return v_load(lanes);
}

static void alibi_column(const struct column *c, const struct rapt_tile_mask *mask) {
    const int64_t *distance = mask->distance + c->row;
    float starts[VL] = {0};
    int far = mask->selected; /* places are not consecutive */
    for (int i = 0; i < c->rows; i++) {
        far |= is_far(distance[i]);
        starts[i] = (float)distance[i];
    }
    vf32 factor = v_load_n(mask->alibi_factor + c->row, c->rows);
    vf32 start = v_sub(v_load(starts), v_splat((float)c->key_begin));
    int key = c->key_begin;
    for (; !far && c->key_end - key >= 4; key += 4, start = v_sub(start, v_splat(4)))
        RAPT_UNROLL for (int k = 0; k < 4; k++) {
            float *score = column_at(c, key) + k * TILE_ROWS;
            v_store(score, v_fma(factor, v_abs(v_sub(start, v_splat((float)k))), v_load(score)));
        }
    for (; key < c->key_end; key++) {
        vf32 at = column_distance(distance, c->rows, place_of(mask, key));
        v_store(column_at(c, key), v_fma(factor, at, v_load(column_at(c, key))));
    }
}

/* Bools of 32 keys, one word per row. Gathered long before use: loading a vector right after storing its single lanes
 * stalls. */
struct flags {
    uint32_t words[RAPT_BLOCK_KEYS / 32 + 1][VL];
};

static void load_flags(struct flags *flags, const uint8_t *const *bytes, int rows, int key_begin, int key_end) {
    memset(flags, 0, sizeof *flags);
    for (int i = 0; i < rows; i++) {
        int key = key_begin, word = 0;
        for (; key_end - key >= 32; key += 32)
            flags->words[word++][i] = s_load_bools(bytes[i] + key, 32);
        if (key < key_end)
            flags->words[word][i] = s_load_bools(bytes[i] + key, key_end - key);
    }
}

RAPT_INLINE void allow(float *score, vmask allowed, vf32 otherwise) {
    v_store(score, v_select(allowed, v_load(score), otherwise));
}

static void mask_column(const struct column *c, const uint8_t *const *bytes, float score_of_false) {
    const vf32 otherwise = v_splat(score_of_false);
    struct flags flags;
    load_flags(&flags, bytes + c->row, c->rows, c->key_begin, c->key_end);
    for (int key = c->key_begin; key < c->key_end; key += 32) {
        int n = c->key_end - key < 32 ? c->key_end - key : 32;
        vbits allowed = v_load_bits(flags.words[(key - c->key_begin) / 32]);
        float *scores = column_at(c, key);
        if (n == 32)
            RAPT_UNROLL for (int k = 0; k < 32; k++)
                allow(scores + k * TILE_ROWS, v_test_bit(allowed, k), otherwise);
        else
            for (int k = 0; k < n; k++)
                allow(scores + k * TILE_ROWS, v_test_bit(allowed, k), otherwise);
    }
}

/* Excludes what the spans exclude: all keys outside their hull, some of those between it and their intersection. */
static void exclude_column(const struct column *c, const struct rapt_visible_spans *spans, const struct span *span) {
    float first[VL] = {0}, end[VL] = {0};
    for (int i = 0; i < c->rows; i++) {
        first[i] = (float)spans->first_key[c->row + i];
        end[i] = (float)spans->end_key[c->row + i];
    }
    for (int key = c->key_begin; key < c->key_end; key++) {
        if (key == span->inner_begin)
            key = span->inner_end;
        if (key == c->key_end)
            break;
        float *score = column_at(c, key);
        vf32 at = v_splat((float)key);
        vmask excluded = v_or(v_less(at, v_load(first)), v_not(v_less(at, v_load(end))));
        v_store(score, v_select(excluded, v_splat(-RAPT_INFINITY), v_load(score)));
    }
}

static void logits_wide(float *scores, int first_row, int end_row, int key_begin, int key_end,
                        const struct rapt_tile_mask *mask) {
    const struct rapt_visible_spans *spans = rapt_spans_of(mask);
    assume_rows(first_row, end_row, VL, TILE_ROWS);
    assume_keys(key_begin, key_end);
    assume_spans(spans, end_row);
    for (int row = first_row; row < end_row; row += VL) {
        int n = end_row - row < VL ? end_row - row : VL;
        struct span span = span_of(spans, row, n, key_begin, key_end);
        struct column all = {scores + row, row, n, key_begin, key_end};
        struct column seen = {scores + row, row, n, span.begin, span.end};
        if (mask->parts & RAPT_PART_SOFTCAP)
            softcap_column(&seen, mask->softcap_log2e);
        if (mask->parts & RAPT_PART_BIAS)
            bias_column(&seen, mask, false);
        if (mask->parts & RAPT_PART_ALIBI)
            alibi_column(&seen, mask);
        if (mask->parts & RAPT_PART_MASK)
            mask_column(&seen, mask->mask, of_false(mask));
        if (bias_acts_again(mask))
            bias_column(&seen, mask, true);
        if (mask->parts & RAPT_PART_SELECT)
            mask_column(&seen, mask->select, -RAPT_INFINITY);
        if (spans)
            exclude_column(&all, spans, &span);
    }
}

/* ---- narrow: one row against its keys */

static vf32 line_distance(const struct rapt_tile_mask *mask, int row, int key, int n) {
    float lanes[VL] = {0};
    for (int i = 0; i < n; i++)
        lanes[i] = far_distance(mask->distance[row] - place_of(mask, key + i));
    return v_load(lanes);
}

static vf32 alibi_line(vf32 t, const struct rapt_tile_mask *mask, int row, int key, int n) {
    int64_t start = mask->distance[row];
    vf32 at = v_abs(v_sub(v_splat((float)start), v_add(v_splat((float)key), v_iota())));
    if (is_far(start) || mask->selected)
        at = line_distance(mask, row, key, n);
    return v_fma(v_splat(mask->alibi_factor[row]), at, t);
}

/* n keys of a row. parts: a constant if only one acts, since tests per vector cost as much as most parts. */
RAPT_INLINE vf32 logits_of(vf32 t, unsigned parts, const struct rapt_tile_mask *mask, int row, int key, int n) {
    vf32 bias = (parts & RAPT_PART_BIAS) ? v_load_n(mask->bias[row] + key, n) : v_splat(0);
    if (parts & RAPT_PART_SOFTCAP)
        t = with_softcap(t, v_splat(mask->softcap_log2e));
    if (parts & RAPT_PART_BIAS)
        t = with_bias(t, bias, v_splat(mask->bias_factor[row]));
    if (parts & RAPT_PART_ALIBI)
        t = alibi_line(t, mask, row, key, n);
    if (parts & RAPT_PART_MASK)
        t = v_select(v_load_bool(mask->mask[row] + key, n), t, v_splat(of_false(mask)));
    if (parts & RAPT_PART_BIAS)
        t = without_biased(t, bias);
    if (parts & RAPT_PART_SELECT)
        t = v_select(v_load_bool(mask->select[row] + key, n), t, v_splat(-RAPT_INFINITY));
    return t;
}

RAPT_INLINE void logits_by_parts(float *scores, int row, int key_begin, int key_end, const struct rapt_tile_mask *mask,
                                 unsigned parts) {
    int key = key_begin;
    for (; key_end - key >= VL; key += VL)
        v_store(scores + key, logits_of(v_load(scores + key), parts, mask, row, key, VL));
    if (key < key_end) {
        const int n = key_end - key;
        v_store_n(scores + key, logits_of(v_load_n(scores + key, n), parts, mask, row, key, n), n);
    }
}

/* What the spans exclude: all before the first key, and from the end on. */
static void exclude_row(float *scores, int first, int end, int key_begin, int key_end) {
    for (int key = key_begin; key < key_end; key += VL) {
        const int n = key_end - key < VL ? key_end - key : VL;
        const vf32 at = v_add(v_splat((float)key), v_iota());
        const vmask seen = v_and(v_not(v_less(at, v_splat((float)first))), v_less(at, v_splat((float)end)));
        if (key < first || key + n > end)
            v_store_n(scores + key, v_select(seen, v_load_n(scores + key, n), v_splat(-RAPT_INFINITY)), n);
    }
}

static void logits_row(float *scores, int row, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    const unsigned parts = mask->parts & ~(unsigned)(RAPT_PART_SPANS | RAPT_PART_KEEP);
    if (parts == RAPT_PART_SOFTCAP)
        logits_by_parts(scores, row, key_begin, key_end, mask, RAPT_PART_SOFTCAP);
    else if (parts == RAPT_PART_BIAS)
        logits_by_parts(scores, row, key_begin, key_end, mask, RAPT_PART_BIAS);
    else if (parts == RAPT_PART_ALIBI)
        logits_by_parts(scores, row, key_begin, key_end, mask, RAPT_PART_ALIBI);
    else if (parts == RAPT_PART_MASK)
        logits_by_parts(scores, row, key_begin, key_end, mask, RAPT_PART_MASK);
    else if (parts)
        logits_by_parts(scores, row, key_begin, key_end, mask, parts);
    if (mask->parts & RAPT_PART_SPANS)
        exclude_row(scores, mask->spans.first_key[row], mask->spans.end_key[row], key_begin, key_end);
}

static void logits_narrow(float *scores, int first_row, int end_row, int key_begin, int key_end,
                          const struct rapt_tile_mask *mask) {
    assume_rows(first_row, end_row, 1, RAPT_MAX_TILE_ROWS); /* order 2 has tiles of more rows */
    assume_keys(key_begin, key_end);
    for (int row = first_row; row < end_row; row++)
        logits_row(scores + (int64_t)row * RAPT_BLOCK_KEYS, row, key_begin, key_end, mask);
}

/* ---- dropout */

RAPT_INLINE vf32 dropped(vf32 p, vmask keep, float keep_scale) {
    return v_select(keep, v_mul(p, v_splat(keep_scale)), v_splat(0));
}

static void drop_wide(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    struct flags flags;
    assume_rows(0, rows, VL, TILE_ROWS);
    assume_keys(key_begin, key_end);
    for (int row = 0; row < rows; row += VL) {
        load_flags(&flags, mask->keep + row, rows - row < VL ? rows - row : VL, key_begin, key_end);
        for (int key = key_begin; key < key_end; key += 32) {
            int n = key_end - key < 32 ? key_end - key : 32;
            vbits keep = v_load_bits(flags.words[(key - key_begin) / 32]);
            for (int k = 0; k < n; k++) {
                float *p = scores + (int64_t)(key + k) * TILE_ROWS + row;
                v_store(p, dropped(v_load(p), v_test_bit(keep, k), mask->keep_scale));
            }
        }
    }
}

static void drop_row(float *p, int row, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    for (int key = key_begin; key < key_end; key += VL) {
        int n = key_end - key < VL ? key_end - key : VL;
        v_store_n(p + key, dropped(v_load_n(p + key, n), v_load_bool(mask->keep[row] + key, n), mask->keep_scale), n);
    }
}

static void drop_narrow(float *scores, int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    assume_rows(0, rows, 1, NARROW_MOST);
    assume_keys(key_begin, key_end);
    for (int row = 0; row < rows; row++)
        drop_row(scores + (int64_t)row * RAPT_BLOCK_KEYS, row, key_begin, key_end, mask);
}

#endif
