/* SPDX-License-Identifier: MIT */
#include "attend/attended.h"

enum { WORDS = RAPT_BLOCK_KEYS / 32 };

struct rapt_attended_range rapt_count_attended(const uint32_t attended[WORDS]) {
    struct rapt_attended_range keys = {0, RAPT_BLOCK_KEYS, 0};
    for (int word = 0; word < WORDS; word++) {
        const uint32_t bits = attended[word];
        if (!bits)
            continue;
        keys.begin = keys.count ? keys.begin : word * 32 + __builtin_ctz(bits);
        keys.end = word * 32 + 32 - __builtin_clz(bits);
        keys.count += __builtin_popcount(bits);
    }
    return keys;
}

int rapt_places_of(const uint32_t attended[WORDS], uint8_t place[RAPT_BLOCK_KEYS]) {
    int count = 0;
    for (int word = 0; word < WORDS; word++)
        for (uint32_t bits = attended[word]; bits; bits &= bits - 1)
            place[count++] = (uint8_t)(word * 32 + __builtin_ctz(bits));
    return count;
}

/* The number of the first key at or after a place. Places ascend from call to call. */
static int number_from(const struct rapt_tile_mask *mask, int number, int32_t place) {
    while (number < mask->selected && mask->place[number] < place)
        number++;
    return number;
}

static void number_spans(int rows, struct rapt_tile_mask *mask) {
    int first = 0, end = 0;
    for (int row = 0; row < rows; row++) {
        first = number_from(mask, first, mask->spans.first_key[row]);
        end = number_from(mask, end, mask->spans.end_key[row]);
        mask->spans.first_key[row] = first;
        mask->spans.end_key[row] = end;
    }
    if (mask->spans.first_key[rows - 1] == 0 && mask->spans.end_key[0] == mask->selected)
        mask->parts &= ~(unsigned)RAPT_PART_SPANS;
}

/* Copies the bytes of the keys, in place or elsewhere; rows that were shared stay shared. */
static void copy_bytes(int rows, const struct rapt_tile_mask *mask, char *room, const uint8_t **bytes) {
    const uint8_t *before = NULL;
    uint8_t *copy = (uint8_t *)room;
    for (int row = 0; row < rows; row++) {
        const uint8_t *from = bytes[row];
        if (from == before) {
            bytes[row] = bytes[row - 1];
            continue;
        }
        for (int i = 0; i < mask->selected; i++)
            copy[i] = from[mask->place[i]];
        before = from;
        bytes[row] = copy;
        copy += RAPT_BLOCK_KEYS;
    }
}

static void copy_biases(int rows, struct rapt_tile_mask *mask, char *room) {
    const float *before = NULL;
    float *copy = (float *)(void *)room;
    for (int row = 0; row < rows; row++) {
        const float *from = mask->bias[row];
        if (from == before) {
            mask->bias[row] = mask->bias[row - 1];
            continue;
        }
        for (int i = 0; i < mask->selected; i++)
            copy[i] = from[mask->place[i]];
        before = from;
        mask->bias[row] = copy;
        copy += RAPT_BLOCK_KEYS;
    }
}

void rapt_number_attended(const struct rapt_task *task, int rows, const uint32_t attended[WORDS],
                          struct rapt_tile_mask *mask) {
    RAPT_ASSUME(rows >= 1 && rows <= RAPT_MAX_TILE_ROWS && mask->selected == 0);
    mask->selected = rapt_places_of(attended, mask->place);
    if (mask->parts & RAPT_PART_SPANS)
        number_spans(rows, mask);
    if (mask->parts & RAPT_PART_SELECT)
        copy_bytes(rows, mask, task->rows_of_keys[RAPT_SELECT_ROWS], mask->select);
    if (mask->parts & RAPT_PART_MASK)
        copy_bytes(rows, mask, task->rows_of_keys[RAPT_MASK_ROWS], mask->mask);
    if (mask->parts & RAPT_PART_KEEP)
        copy_bytes(rows, mask, task->rows_of_keys[RAPT_KEEP_ROWS], mask->keep);
    if (mask->parts & RAPT_PART_BIAS)
        copy_biases(rows, mask, task->rows_of_keys[RAPT_BIAS_ROWS]);
}
