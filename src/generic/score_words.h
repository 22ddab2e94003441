/* SPDX-License-Identifier: MIT
 * Scores of narrow tiles, whose lanes are keys: float32, and types that are widened beside their products. Other types:
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

/* What v_byte_of makes of a byte, over the byte, is 1 over this. */
static const float unit_of_bytes = 0x1p-24f;

RAPT_INLINE bool is_of_bytes(int format) { return format == RAPT_FORMAT_Q8_0 || format == RAPT_FORMAT_I8; }
RAPT_INLINE bool is_of_nibbles(int format) {
    return format == RAPT_FORMAT_Q4_0 || format == RAPT_FORMAT_Q4_1 || format == RAPT_FORMAT_IQ4_NL;
}

/* 32 int8 or nibbles of VL rows, mostly a block with a scale of its own: their bytes are transposed as words. */
struct blocks {
    vbits word[8];
    vf32 scale, minimum;
};

/* From that byte on. scale: of int8. */
RAPT_INLINE struct blocks load_blocks(int format, const char *const *rows, int64_t byte, vf32 scale) {
    const int head = format == RAPT_FORMAT_I8 ? 0 : format == RAPT_FORMAT_Q4_1 ? 4 : 2;
    struct blocks blocks = {.scale = head ? v_load_halves(rows, byte) : scale,
                            .minimum = head == 4 ? v_load_halves(rows, byte + 2) : v_splat(0)};
    if (format == RAPT_FORMAT_Q8_0)
        blocks.scale = v_mul(blocks.scale, v_splat(unit_of_bytes));
    for (int c = 0; c < (is_of_bytes(format) ? 8 : 4); c += 4)
        v_load_words(blocks.word + c, rows, byte + head + 4 * c);
    return blocks;
}

/* Number n of each row. */
RAPT_INLINE vf32 number_of_blocks(int format, const struct blocks *blocks, int n) {
    const int8_t *codes = format == RAPT_FORMAT_Q4_0   ? codes_of_q4_0
                          : format == RAPT_FORMAT_Q4_1 ? codes_of_q4_1
                                                       : codes_of_iq4_nl;
    if (is_of_bytes(format))
        return v_mul(v_byte_of(blocks->word[n / 4], n % 4), blocks->scale);
    const vf32 number = v_nibble_of(blocks->word[n % 16 / 4], n % 4 * 8 + n / 16 * 4, codes);
    return format == RAPT_FORMAT_Q4_1 ? v_fma(number, blocks->scale, blocks->minimum) : v_mul(number, blocks->scale);
}

RAPT_INLINE bool is_of_blocks(int format) { return format == RAPT_FORMAT_Q8_0 || is_of_nibbles(format); }

/* Rows of these are transposed by words, of one number or two; others by way of a panel, which is faster where vectors
 * are short and few chains at once wait for their sums. */
RAPT_INLINE bool is_of_words(int format) {
    return format == RAPT_FORMAT_F32 || (format == RAPT_FORMAT_BF16 && VL > 1) ||
           ((format == RAPT_FORMAT_F16 || is_of_blocks(format)) && VL >= 16);
}

/* Of blocks: of 32 numbers, a VLth. */
RAPT_INLINE int numbers_of_word(int format) { return format == RAPT_FORMAT_F32 ? 1 : 2; }

/* VL x VL words of the rows of some keys, transposed: in registers, but for float16, which conversions read from memory
 * as fast. */
struct words {
    vf32 lanes[VL];
    uint16_t halves[2 * VL * VL];
    struct blocks blocks;
};

RAPT_INLINE void load_words_of(int format, struct words *words, const struct key_rows *keys, int64_t byte) {
    const char *rows[VL];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        rows[i] = key_row(keys, i, byte);
    if (format == RAPT_FORMAT_F16) {
        v_transpose_halves(words->halves, rows, 0);
        return;
    }
    if (is_of_blocks(format)) {
        words->blocks = load_blocks(format, rows, 0, v_splat(1));
        return;
    }
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        words->lanes[i] = v_load(row_at(rows[i], 0, 0));
    v_transpose(words->lanes);
}

/* Number n of each row. */
RAPT_INLINE vf32 number_of_words(int format, const struct words *words, int n) {
    if (format == RAPT_FORMAT_F16)
        return v_load_half(words->halves + n * VL);
    if (is_of_blocks(format))
        return number_of_blocks(format, &words->blocks, n);
    if (format == RAPT_FORMAT_BF16)
        return n % 2 == 0 ? v_even_bf16(words->lanes[n / 2]) : v_odd_bf16(words->lanes[n / 2]);
    return words->lanes[n];
}

/* Adds `width` words of VL keys to the chains of `rows` rows, and prefetches as many bytes: memory feeds this.
 * square: its number. */
RAPT_INLINE void score_words(int format, const float *query, const struct words *words, vf32 *sum,
                             struct stream *stream, int square, int lines, int width, int rows) {
    const int numbers = numbers_of_word(format);
    RAPT_UNROLL for (int i = 0; i < VL; i++) {
        stream_line(stream, lines % 2 == 0 ? i : square * VL + i, lines, VL);
        if (i < width)
            RAPT_UNROLL for (int n = i * numbers; n < (i + 1) * numbers; n++) {
                const vf32 x = number_of_words(format, words, n);
                RAPT_UNROLL for (int r = 0; r < rows; r++)
                    sum[r] = v_fma(v_splat(query[n * rows + r]), x, sum[r]);
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
    const int64_t square_bytes = rapt_format_row_bytes(format, VL * numbers);
    const int64_t number_bytes = is_of_blocks(format) ? 0 : rapt_format_row_bytes(format, 1);
    const float *query = a->query;
    vf32 sum[NARROW_ROWS];
    struct words words;
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        sum[r] = v_splat(0);
    int64_t byte = 0;
    int left = a->head_dim, square = 0;
    for (; left >= VL * numbers; left -= VL * numbers, query += VL * numbers * rows) {
        if (stream.turns)
            turns_fetch(stream.turns, stored_lines(format, VL * VL * numbers));
        load_words_of(format, &words, &keys, byte);
        byte += square_bytes;
        if (keys.spaced)
            go_on(keys.spaced, square_bytes);
        score_words(format, query, &words, sum, &stream, square++, stored_lines(format, VL * VL * numbers), VL, rows);
    }
    for (int width; number_bytes && left > 0; left -= width, query += width * rows) {
        width = left < VL ? left : VL;
        RAPT_UNROLL for (int i = 0; i < VL; i++)
            words.lanes[i] = load_numbers(format, key_row(&keys, i, byte), width);
        byte += width * number_bytes;
        if (keys.spaced)
            go_on(keys.spaced, width * number_bytes);
        v_transpose(words.lanes);
        score_words(RAPT_FORMAT_F32, query, &words, sum, &stream, square++, stored_lines(format, VL * VL), width, rows);
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

/* Types that may be of words. */
#define RAPT_WORD_FORMATS(X, rows)                                                                               \
    X(f32, F32, rows) X(bf16, BF16, rows) X(f16, F16, rows) X(q8_0, Q8_0, rows) X(q4_0, Q4_0, rows)              \
    X(q4_1, Q4_1, rows) X(iq4_nl, IQ4_NL, rows)

#define RAPT_SCORE(name, NAME, rows)                                                                             \
    static RAPT_KERNEL void score_##name##_rows_##rows(const struct rapt_score_args *a) {                        \
        if (is_of_words(RAPT_FORMAT_##NAME))                                                                     \
            score_rows(a, RAPT_FORMAT_##NAME, rows < NARROW_ROWS ? rows : NARROW_ROWS);                          \
    }
#define RAPT_SCORE_ROWS(rows) RAPT_WORD_FORMATS(RAPT_SCORE, rows)
RAPT_HEIGHTS(RAPT_SCORE_ROWS)
#undef RAPT_SCORE_ROWS
#undef RAPT_SCORE

/* Of types that are transposed by words. */
static void score_narrow_words(const struct rapt_score_args *a) {
    typedef void scorer(const struct rapt_score_args *);
#define RAPT_SCORE(name, NAME, rows) [RAPT_FORMAT_##NAME] = score_##name##_rows_##rows,
#define RAPT_SCORE_ROWS(rows) {RAPT_WORD_FORMATS(RAPT_SCORE, rows)},
    static scorer *const of_rows[][RAPT_FORMAT_COUNT] = {RAPT_HEIGHTS(RAPT_SCORE_ROWS)};
#undef RAPT_SCORE_ROWS
#undef RAPT_SCORE
    of_rows[a->rows - 1][a->key_format](a);
}

#endif
