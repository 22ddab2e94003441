/* SPDX-License-Identifier: MIT
 * Scores of narrow tiles, whose lanes are keys: float32 and bfloat16, which are transposed in registers. Other types:
 * score_stored.h. */
#ifndef RAPT_GENERIC_SCORE_WORDS_H
#define RAPT_GENERIC_SCORE_WORDS_H

#include "generic/score.h"
#include "generic/stored.h"
#include "generic/stream.h"

/* Where VL keys lie at one stride: every fourth, since processors add a register, or two or four times it, to an
 * address. */
struct spaced {
    const char *fourth[(VL + 3) / 4];
    int64_t stride_bytes, three; /* strides */
};

RAPT_INLINE struct spaced spaced_from(const char *key, int64_t stride_bytes) {
    struct spaced keys = {.stride_bytes = stride_bytes, .three = 3 * stride_bytes};
    RAPT_OPAQUE(keys.three);
    RAPT_UNROLL for (int i = 0; i < VL; i += 4) {
        keys.fourth[i / 4] = key + i * stride_bytes;
        RAPT_OPAQUE(keys.fourth[i / 4]);
    }
    return keys;
}

RAPT_INLINE void go_on(struct spaced *keys, int64_t bytes) {
    RAPT_UNROLL for (int i = 0; i < VL; i += 4) {
        keys->fourth[i / 4] += bytes;
        RAPT_OPAQUE(keys->fourth[i / 4]);
    }
}

/* VL keys: at one stride, or anywhere. */
struct key_rows {
    struct spaced *spaced; /* NULL = at `at`; known to the compiler */
    const char *const *at;
};

RAPT_INLINE const char *key_row(const struct key_rows *keys, int i, int64_t byte) {
    const struct spaced *spaced = keys->spaced;
    return spaced ? spaced->fourth[i / 4] + (i % 4 == 3 ? spaced->three : i % 4 * spaced->stride_bytes)
                  : keys->at[i] + byte;
}

/* Rows of these are transposed by words, of one number or two. */
RAPT_INLINE bool is_of_words(int format) {
    return format == RAPT_FORMAT_F32 || (VL > 1 && format == RAPT_FORMAT_BF16);
}

RAPT_INLINE int numbers_of_word(int format) { return format == RAPT_FORMAT_BF16 ? 2 : 1; }

/* Adds `width` words of VL keys to the chains of `rows` rows, and prefetches as many bytes: memory feeds this.
 * square: its number. */
RAPT_INLINE void score_words(const float *query, const vf32 *words, vf32 *sum, struct stream *stream, int square,
                             int lines, int numbers, int width, int rows) {
    RAPT_UNROLL for (int i = 0; i < VL; i++) {
        stream_line(stream, lines % 2 == 0 ? i : square * VL + i, lines, VL);
        if (i < width)
            RAPT_UNROLL for (int j = 0; j < numbers; j++) {
                const vf32 x = numbers == 1 ? words[i] : j == 0 ? v_even_bf16(words[i]) : v_odd_bf16(words[i]);
                RAPT_UNROLL for (int r = 0; r < rows; r++)
                    sum[r] = v_fma(v_splat(query[(i * numbers + j) * rows + r]), x, sum[r]);
            }
    }
}

/* n numbers of a row, at most VL. */
RAPT_INLINE vf32 load_numbers(int format, const char *row, int n) {
    if (n == VL)
        return v_load_stored(format, row, 0);
    return format == RAPT_FORMAT_F32 ? v_load_n(row_at(row, 0, 0), n) : v_load_stored_rest(format, row, 0, n);
}

/* rows x n scores, by transposing VL x VL words of the key rows, and in the end single numbers. */
RAPT_INLINE void score_transposed(const struct rapt_score_args *a, int format, struct key_rows keys,
                                  struct stream stream, float *scores, int n, int rows) {
    const int numbers = numbers_of_word(format);
    const int64_t bytes = rapt_format_row_bytes(format, 1);
    const float *query = a->query;
    vf32 sum[NARROW_ROWS], words[VL];
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        sum[r] = v_splat(0);
    int64_t byte = 0;
    int left = a->head_dim, square = 0;
    for (; left >= VL * numbers; left -= VL * numbers, query += VL * numbers * rows) {
        if (stream.turns)
            turns_fetch(stream.turns, stored_lines(format, VL * VL * numbers));
        RAPT_UNROLL for (int i = 0; i < VL; i++)
            words[i] = v_load(row_at(key_row(&keys, i, byte), 0, 0));
        byte += VL * numbers * bytes;
        if (keys.spaced)
            go_on(keys.spaced, VL * numbers * bytes);
        v_transpose(words);
        score_words(query, words, sum, &stream, square++, stored_lines(format, VL * VL * numbers), numbers, VL, rows);
    }
    for (int width; left > 0; left -= width, query += width * rows) {
        width = left < VL ? left : VL;
        RAPT_UNROLL for (int i = 0; i < VL; i++)
            words[i] = load_numbers(format, key_row(&keys, i, byte), width);
        byte += width * bytes;
        if (keys.spaced)
            go_on(keys.spaced, width * bytes);
        v_transpose(words);
        score_words(query, words, sum, &stream, square++, stored_lines(format, VL * VL), 1, width, rows);
    }
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        vf32 score = v_mul(sum[r], v_splat(a->factor));
        if (n == VL)
            v_store(scores + r * RAPT_BLOCK_KEYS, score);
        else
            v_store_n(scores + r * RAPT_BLOCK_KEYS, score, n);
    }
}

/* VL keys at one stride. */
RAPT_INLINE void score_spaced(const struct rapt_score_args *a, int format, const char *key, struct stream stream,
                              float *scores, int rows) {
    struct spaced spaced = spaced_from(key, a->key_stride_bytes);
    score_transposed(a, format, (struct key_rows){.spaced = &spaced}, stream, scores, VL, rows);
}

RAPT_INLINE void score_rows(const struct rapt_score_args *a, int format, int rows) {
    struct feed feed = feed_of(a);
    int k = a->key_begin;
    for (; !a->runs && a->key_end - k >= VL; k += VL, feed.walk.row += VL * a->key_stride_bytes)
        score_spaced(a, format, feed.walk.row, stream_of(a, format, feed.walk.row, VL), a->scores + k, rows);
    for (int n; k < a->key_end; k += n) {
        const char *keys[VL];
        n = a->key_end - k < VL ? a->key_end - k : VL;
        const struct stream stream = feed_keys(&feed, a, format, keys, n, VL);
        score_transposed(a, format, (struct key_rows){.at = keys}, stream, a->scores + k, n, rows);
    }
}

/* Numbers of rows that have a function of their own. */
#define RAPT_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)

#define RAPT_SCORE_ROWS(rows)                                                                                    \
    static RAPT_KERNEL void score_rows_##rows(const struct rapt_score_args *a) {                                 \
        score_rows(a, RAPT_FORMAT_F32, rows < NARROW_ROWS ? rows : NARROW_ROWS);                                 \
    }                                                                                                            \
    static RAPT_KERNEL void score_bf16_rows_##rows(const struct rapt_score_args *a) {                            \
        score_rows(a, RAPT_FORMAT_BF16, rows < NARROW_ROWS ? rows : NARROW_ROWS);                                \
    }
RAPT_HEIGHTS(RAPT_SCORE_ROWS)
#undef RAPT_SCORE_ROWS

/* Of float32 and bfloat16. */
static void score_narrow_words(const struct rapt_score_args *a) {
#define RAPT_SCORE_ROWS(rows) {score_rows_##rows, score_bf16_rows_##rows},
    static void (*const of_rows[][2])(const struct rapt_score_args *) = {RAPT_HEIGHTS(RAPT_SCORE_ROWS)};
#undef RAPT_SCORE_ROWS
    of_rows[a->rows - 1][a->key_format == RAPT_FORMAT_BF16](a);
}

#endif
