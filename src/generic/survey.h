/* SPDX-License-Identifier: MIT
 * Scans masks for keys to leave out. */
#ifndef RAPT_GENERIC_SURVEY_H
#define RAPT_GENERIC_SURVEY_H

#include "generic/assumed.h"
#include "generic/fetch.h"

enum { SURVEY_AHEAD = 8 }; /* rows */

static uint32_t first_bits(int count) { return count > 0 ? UINT32_MAX >> (32 - count) : 0; }

static int count_bits(uint32_t x) {
    x -= x >> 1 & 0x55555555;
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    return (int)(((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24);
}

static bool has_false(const uint8_t *bytes, int key_begin, int key_end) {
    uint32_t all = UINT32_MAX;
    int key = key_begin;
    for (; key_end - key >= 32; key += 32)
        all &= s_load_bools(bytes + key, 32);
    if (key < key_end)
        all &= s_load_bools(bytes + key, key_end - key) | ~first_bits(key_end - key);
    return all != UINT32_MAX;
}

/* Keeps bits whose bias is not -infinity, of up to 32 keys. Uniform vectors skip the test of single keys. */
static uint32_t biased_bits(const float *bias, int count, uint32_t bits) {
    for (int key = 0; key < count; key += VL) {
        const int n = count - key < VL ? count - key : VL;
        const uint32_t here = first_bits(n) << key;
        if (!(bits & here))
            continue;
        const vmask excluded = v_equal(v_load_n(bias + key, n), v_splat(-RAPT_INFINITY));
        const vmask present = v_less(v_iota(), v_splat((float)n));
        if (!v_any(v_and(present, v_not(excluded))))
            bits &= ~here;
        else if (v_any(excluded))
            for (int i = key; i < key + n; i++)
                bits &= ~((uint32_t)(bias[i] == -RAPT_INFINITY) << i);
    }
    return bits;
}

/* Bits of up to 32 keys: whether a row attends to them. */
static uint32_t attended_bits(const struct rapt_tile_mask *mask, int row, int key, int count) {
    uint32_t bits = first_bits(count);
    if (rapt_mask_excludes(mask->parts))
        bits &= s_load_bools(mask->mask[row] + key, count);
    if (mask->parts & RAPT_PART_SELECT)
        bits &= s_load_bools(mask->select[row] + key, count);
    if (mask->parts & RAPT_PART_BIAS)
        bits = biased_bits(mask->bias[row] + key, count, bits);
    return bits;
}

/* Whether two rows read the same masks, as the heads of a group often do. */
static bool share_masks(const struct rapt_tile_mask *mask, int row, int other) {
    return (!(mask->parts & RAPT_PART_MASK) || mask->mask[row] == mask->mask[other]) &&
           (!(mask->parts & RAPT_PART_SELECT) || mask->select[row] == mask->select[other]) &&
           (!(mask->parts & RAPT_PART_BIAS) || mask->bias[row] == mask->bias[other]);
}

/* Whether any bias is not 0. */
static bool has_change(const float *bias, int key_begin, int key_end) {
    int key = key_begin;
    for (; key_end - key >= 4 * VL; key += 4 * VL) {
        vmask zero = v_equal(v_load(bias + key), v_splat(0));
        RAPT_UNROLL for (int i = 1; i < 4; i++)
            zero = v_and(zero, v_equal(v_load(bias + key + i * VL), v_splat(0)));
        if (v_any(v_not(zero)))
            return true;
    }
    for (; key < key_end; key++)
        if (bias[key] != 0)
            return true;
    return false;
}

/* Whether bool masks have false entries, and biases nonzero ones. */
static unsigned survey_parts(int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask) {
    bool some_false = false, some_change = false;
    for (int row = 0; (mask->parts & RAPT_PART_MASK) && row < rows && !some_false; row++)
        if (row == 0 || mask->mask[row] != mask->mask[row - 1])
            some_false = has_false(mask->mask[row], key_begin, key_end);
    for (int row = 0; (mask->parts & RAPT_PART_BIAS) && row < rows && !some_change; row++)
        if (row == 0 || mask->bias[row] != mask->bias[row - 1])
            some_change = has_change(mask->bias[row], key_begin, key_end);
    return (some_false ? RAPT_SOME_FALSE : 0u) | (some_change ? RAPT_SOME_CHANGE : 0u);
}

/* Masks and biases of an upcoming row: rows are too far apart for the processor to prefetch. */
RAPT_INLINE void prefetch_masks(const struct rapt_tile_mask *mask, int row, int key_begin, int key_end) {
    if (mask->parts & RAPT_PART_MASK)
        for (int key = key_begin; key < key_end + 63; key += 64)
            fetch_soon(mask->mask[row] + key);
    if (mask->parts & RAPT_PART_BIAS)
        for (int key = key_begin; key < key_end + 15; key += 16)
            fetch_soon(mask->bias[row] + key);
}

static int end_of_word(int key, int key_end) {
    const int end = key / 32 * 32 + 32;
    return end < key_end ? end : key_end;
}

static unsigned survey(int rows, int key_begin, int key_end, const struct rapt_tile_mask *mask,
                       uint32_t attended[RAPT_BLOCK_KEYS / 32]) {
    const unsigned found = survey_parts(rows, key_begin, key_end, mask);
    bool alike = true;
    int count = 0;
    assume_rows(0, rows, 1, RAPT_MAX_TILE_ROWS);
    assume_keys(key_begin, key_end);
    memset(attended, 0, RAPT_BLOCK_KEYS / 8);
    for (int row = 0; row < rows; row++) {
        if (row > 0 && share_masks(mask, row, row - 1))
            continue;
        if (row + SURVEY_AHEAD < rows)
            prefetch_masks(mask, row + SURVEY_AHEAD, key_begin, key_end);
        for (int key = key_begin, end; key < key_end; key = end) {
            uint32_t *word = &attended[key / 32];
            end = end_of_word(key, key_end);
            const uint32_t bits = attended_bits(mask, row, key, end - key) << key % 32;
            alike = alike && (row == 0 || bits == *word);
            if (bits & ~*word)
                count += count_bits(bits & ~*word);
            *word |= bits;
        }
        if (4 * count > 3 * (key_end - key_begin)) {
            for (int key = key_begin, end; key < key_end; key = end) {
                end = end_of_word(key, key_end);
                attended[key / 32] |= first_bits(end - key) << key % 32;
            }
            return found;
        }
    }
    return found | (alike ? RAPT_ALIKE : 0);
}

#endif
