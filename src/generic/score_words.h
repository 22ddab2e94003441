/* SPDX-License-Identifier: MIT
 * Scores of narrow tiles, whose lanes are keys: float32, and types that are widened between FMAs. Other types:
 * score_stored.h. */
#ifndef RAPT_GENERIC_SCORE_WORDS_H
#define RAPT_GENERIC_SCORE_WORDS_H

#include "generic/blocks.h"
#include "generic/float8.h"
#include "generic/score.h"
#include "generic/squares.h"
#include "generic/stream.h"

/* VL keys at one stride: pointers to every fourth, since addressing modes add a register times 1, 2 or 4. */
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

RAPT_INLINE const char *spaced_row(const struct spaced *keys, int i) {
    return keys->fourth[i / 4] + (i % 4 == 3 ? keys->three : i % 4 * keys->stride_bytes);
}

RAPT_INLINE void spaced_advance(struct spaced *keys, int64_t bytes) {
    RAPT_UNROLL for (int i = 0; i < VL; i += 4) {
        keys->fourth[i / 4] += bytes;
        RAPT_OPAQUE(keys->fourth[i / 4]);
    }
}

/* Rows of these are transposed by words; others go through a panel, which is faster where a square has few words and
 * few chains are in flight. A bit per type. */
enum {
    WORD_FORMATS =
        1 << RAPT_FORMAT_F32 | (VL > 1) << RAPT_FORMAT_BF16 | (VL >= 8) << RAPT_FORMAT_F16 |
        (VL >= 8) << RAPT_FORMAT_Q8_0 | (VL >= 8) << RAPT_FORMAT_Q4_0 | (VL >= 8) << RAPT_FORMAT_Q4_1 |
        (VL >= 8) << RAPT_FORMAT_Q5_0 | (VL >= 8) << RAPT_FORMAT_Q5_1 | (VL >= 8) << RAPT_FORMAT_IQ4_NL |
        RAPT_LOOKS_UP_BYTES << RAPT_FORMAT_F8_E4M3 | RAPT_LOOKS_UP_BYTES << RAPT_FORMAT_F8_E5M2
};
#define RAPT_IS_OF_WORDS(format) ((WORD_FORMATS >> (format) & 1) != 0)

/* Numbers per word of a square; of blocks, a VLth of 32. */
RAPT_INLINE int numbers_of_word(int format) {
    return format == RAPT_FORMAT_F32 ? 1 : is_of_blocks(format) ? STORED_STEP / VL : 2;
}

/* Words per key in a square. Blocks come whole. */
RAPT_INLINE int square_words(int format) { return RAPT_HALF_SQUARES && !is_of_blocks(format) ? VL / 2 : VL; }

/* Vectors of keys at once, at most. */
#ifndef RAPT_WORD_VECTORS
#define RAPT_WORD_VECTORS 2
#endif
enum { WORD_VECTORS = RAPT_WORD_VECTORS };

/* Whether a square goes through L1, from where conversions read as fast as from registers. With few registers, two
 * squares of bfloat16 and the sums of some rows would spill. */
RAPT_INLINE bool goes_through_l1(int format, int rows) {
    return !RAPT_HALF_SQUARES && (format == RAPT_FORMAT_F16 ||
                                  (format == RAPT_FORMAT_BF16 && VL == 8 && rows >= 3 && rows <= 5));
}

/* FMAs of a chain are serial: few rows take more keys at once, where that latency exceeds reading the keys, and
 * registers suffice. */
RAPT_INLINE int vectors_of_words(int format, int rows) {
    if (RAPT_HALF_SQUARES)
        return rows == 1 ? WORD_VECTORS : RAPT_HALF_SQUARES; /* where vectors are split, two sums are enough */
    const int most_rows = format == RAPT_FORMAT_F32                      ? 0
                          : goes_through_l1(format, rows)                ? 5
                          : VL < 16                                      ? 2
                          : is_of_nibbles(format)                        ? 6
                          : is_of_blocks(format) || is_looked_up(format) ? 4
                                                                         : 5;
    return rows <= most_rows ? WORD_VECTORS : 1;
}

/* A square of words of the rows of some keys, transposed. */
struct words {
    vf32 lanes[VL];
    uint16_t shorts[2 * VL * VL];
    struct blocks blocks;
    vbits codes[8]; /* of float8 */
    const struct float8_table *table;
};

/* rows: of queries. */
RAPT_INLINE void load_words_of(int format, struct words *words, const char *const *keys, int rows) {
    const bool quarters = suits_quarters(rows, vectors_of_words(format, rows));
    if (RAPT_HALF_SQUARES && format == RAPT_FORMAT_F16) {
        v_load_columns(words->lanes, keys, 0);
        return;
    }
    if (goes_through_l1(format, rows)) {
        load_square_of_shorts(words->shorts, keys, 0, quarters);
        return;
    }
    if (is_of_blocks(format)) {
        words->blocks = load_blocks(format, keys, 0, v_splat(1));
        return;
    }
    if (is_float8(format)) {
        for (int c = 0; c < 8; c += 4)
            v_load_code_pairs(words->codes + c, keys, 4 * c);
        return;
    }
    load_square_of_words(words->lanes, keys, 0, quarters);
}

RAPT_INLINE void load_spaced(int format, struct words *words, struct spaced *keys, int64_t square_bytes, int rows) {
    const char *at[VL];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        at[i] = spaced_row(keys, i);
    load_words_of(format, words, at, rows);
    spaced_advance(keys, square_bytes);
}

/* Number n of each row. */
RAPT_INLINE vf32 number_of_words(int format, const struct words *words, int n, int rows) {
    if (RAPT_HALF_SQUARES && format == RAPT_FORMAT_F16)
        return v_widen_column(words->lanes, n);
    if (goes_through_l1(format, rows))
        return format == RAPT_FORMAT_F16 ? v_load_f16(words->shorts + n * VL) : v_load_bf16(words->shorts + n * VL);
    if (is_of_blocks(format))
        return number_of_blocks(format, &words->blocks, n);
    if (is_float8(format)) {
        const struct float8_parts parts = float8_parts_of(words->table, words->codes[n / 4]);
        return float8_number(parts, n % 4);
    }
    if (format == RAPT_FORMAT_BF16)
        return n % 2 == 0 ? v_even_bf16(words->lanes[n / 2]) : v_odd_bf16(words->lanes[n / 2]);
    return words->lanes[n];
}

/* VL keys: at one stride from `key` on, or, unless NULL, where `at` says. */
struct key_place {
    const char *key, *const *at;
};

/* State of VL keys. */
struct key_words {
    struct spaced spaced;
    const char *const *at; /* NULL = spaced */
    struct words words;
    vf32 scale; /* of types that have one each */
    vf32 sum[NARROW_ROWS];
};

RAPT_INLINE vf32 number_of_keys(int format, const struct key_words *keys, int n, int rows) {
    const vf32 number = number_of_words(format, &keys->words, n, rows);
    return is_scaled(format) ? v_mul(number, keys->scale) : number;
}

/* Adds words of VL keys, and of VL more unless NULL, to the chains of `rows` rows, and prefetches as many lines: it is
 * memory-bound. square: its number. width: what exists of it. */
RAPT_INLINE void score_words(int format, const float *query, struct key_words *keys, struct key_words *more,
                             struct stream *stream, int square, int lines, int width, int rows) {
    const int words = square_words(format), numbers = words * numbers_of_word(format);
    const int steps = words * vectors_of_words(format, rows);
    RAPT_UNROLL for (int step = 0; step < steps; step++) {
        if (step > 0 && step * 4 % steps == 0 && width <= step * numbers / steps)
            return;
        stream_line(stream, lines % 2 == 0 ? step : square * steps + step, lines, steps);
        RAPT_UNROLL for (int n = step * numbers / steps; n < (step + 1) * numbers / steps; n++) {
            const vf32 x = number_of_keys(format, keys, n, rows);
            RAPT_UNROLL for (int r = 0; r < rows; r++)
                keys->sum[r] = v_fma(v_splat(query[n * rows + r]), x, keys->sum[r]);
            if (!more)
                continue;
            const vf32 y = number_of_keys(format, more, n, rows);
            RAPT_UNROLL for (int r = 0; r < rows; r++)
                more->sum[r] = v_fma(v_splat(query[n * rows + r]), y, more->sum[r]);
        }
    }
}

/* Copies some bytes of each of VL rows, zero-padded; rows then points to the copies. */
static RAPT_KERNEL void copy_rests(char (*copy)[4 * VL], const char **rows, size_t bytes) {
    for (int i = 0; i < VL; i++) {
        copy_rest(copy[i], rows[i], bytes);
        rows[i] = copy[i];
    }
}

/* key: the first of VL, of which n exist. */
RAPT_INLINE vf32 scales_of_keys(const struct rapt_score_args *a, int key, int n) {
    const int64_t step = a->scales.stride_bytes / (int64_t)sizeof(float);
    if (!a->scales.scales || step == 0)
        return v_splat(a->scales.scales ? *a->scales.scales : 1);
    const float *first = a->scales.scales + key * step;
    float scales[VL];
    for (int i = 0; i < VL; i++)
        scales[i] = first[(i < n ? i : 0) * step];
    return v_load(scales);
}

RAPT_INLINE void open_keys(const struct rapt_score_args *a, int format, struct key_words *keys, struct key_place place,
                           int key, int n, int rows) {
    keys->spaced = spaced_from(place.key, a->key_stride_bytes);
    keys->scale = is_scaled(format) ? scales_of_keys(a, key, n) : v_splat(1);
    keys->at = place.at;
    keys->words.table = float8_table_of(a->key_format);
    RAPT_UNROLL for (int r = 0; r < rows; r++)
        keys->sum[r] = v_splat(0);
}

/* The next words; byte: where they begin. width: the numbers that are left, if fewer than a square has. */
RAPT_INLINE void load_keys(int format, struct key_words *keys, int64_t byte, int width, int rows) {
    const int whole = square_words(format) * numbers_of_word(format);
    if (!keys->at && width == whole) {
        load_spaced(format, &keys->words, &keys->spaced, rapt_format_row_bytes(format, whole), rows);
        return;
    }
    _Alignas(64) char copy[VL][4 * VL];
    const char *from[VL];
    RAPT_UNROLL for (int i = 0; i < VL; i++)
        from[i] = keys->at ? keys->at[i] + byte : spaced_row(&keys->spaced, i);
    if (width < whole)
        copy_rests(copy, from, (size_t)rapt_format_row_bytes(format, width));
    load_words_of(format, &keys->words, from, rows);
}

RAPT_INLINE void store_scores(const struct rapt_score_args *a, const struct key_words *keys, float *scores, int n,
                              int rows) {
    RAPT_UNROLL for (int r = 0; r < rows; r++) {
        const vf32 score = v_mul(keys->sum[r], v_splat(a->factor));
        if (n >= VL)
            v_store(scores + r * RAPT_BLOCK_KEYS, score);
        else
            v_store_n(scores + r * RAPT_BLOCK_KEYS, score, n);
    }
}

/* rows x n scores of one vector of keys or two, from key_begin + first on, by transposing VL x VL words of their rows.
 * A remainder is padded with zeros, and its query with -0: a sum plus -0 is this sum. whole: no remainder. */
RAPT_INLINE void score_transposed(const struct rapt_score_args *a, int format, const struct key_place *places,
                                  bool whole, struct stream *stream, float *scores, int first, int n, int rows) {
    const int width = square_words(format) * numbers_of_word(format);
    const bool two = vectors_of_words(format, rows) == 2;
    const int lines = stored_lines(format, VL * width * (two ? 2 : 1));
    const float *query = a->query;
    struct key_words keys, more;
    open_keys(a, format, &keys, places[0], first, n, rows);
    if (two)
        open_keys(a, format, &more, places[1], n > VL ? first + VL : first, n - VL, rows);
    int64_t byte = 0;
    for (int left = a->head_dim, square = 0; left > 0; left -= width, square++) {
        if (stream->strands)
            fetch_strands(stream->strands, lines);
        int here = whole ? width : left;
        if (!whole)
            RAPT_OPAQUE(here); /* else compilers split off the last iteration */
        here = here < width ? here : width;
        load_keys(format, &keys, byte, here, rows);
        if (two)
            load_keys(format, &more, byte, here, rows);
        score_words(format, query, &keys, two ? &more : NULL, stream, square, lines, here, rows);
        query += width * rows;
        byte += rapt_format_row_bytes(format, width);
    }
    store_scores(a, &keys, scores, n, rows);
    if (two && n > VL)
        store_scores(a, &more, scores + VL, n - VL, rows);
}

/* Places of the next n keys: by stride for full vectors within one run, else `at`. */
RAPT_INLINE void find_keys(struct key_place *places, struct walk walk, int64_t stride_bytes, const char *const *at,
                           int n, int vectors) {
    RAPT_UNROLL for (int v = 0; v < vectors; v++) {
        const bool spaced = n - v * VL >= VL && walk.left >= VL;
        places[v] = (struct key_place){walk.row, spaced ? NULL : at + v * VL};
        if (v + 1 < vectors && n > VL)
            walk_by(&walk, VL, stride_bytes);
    }
}

RAPT_INLINE void score_rows(const struct rapt_score_args *a, int format, int rows) {
    const int vectors = vectors_of_words(format, rows), most = vectors * VL;
    struct feed feed;
    open_feed(&feed, a);
    for (int k = a->key_begin, n; k < a->key_end; k += n) {
        const char *at[WORD_VECTORS * VL];
        struct key_place places[WORD_VECTORS];
        n = a->key_end - k < most ? a->key_end - k : most;
        const bool spaced = n == most && feed.walk.left >= most;
        find_keys(places, feed.walk, a->key_stride_bytes, at, n, vectors);
        struct stream stream = spaced ? feed_spaced(&feed, a, format, n) : feed_keys(&feed, a, format, at, n, most);
        score_transposed(a, format, places, is_of_blocks(format), &stream, a->scores + k, k - a->key_begin, n, rows);
    }
}

/* Types that may be of words. */
#ifndef RAPT_WORD_FORMATS
#define RAPT_WORD_FORMATS(X, rows)                                                                               \
    X(f32, F32, rows) X(bf16, BF16, rows) X(f16, F16, rows) X(q8_0, Q8_0, rows) X(q4_0, Q4_0, rows)              \
    X(q4_1, Q4_1, rows) X(q5_0, Q5_0, rows) X(q5_1, Q5_1, rows) X(iq4_nl, IQ4_NL, rows)
#endif

#define RAPT_SCORE(name, NAME, rows)                                                                             \
    static RAPT_KERNEL void score_##name##_rows_##rows(const struct rapt_score_args *a) {                        \
        if (RAPT_IS_NARROW(RAPT_FORMAT_##NAME, rows) && RAPT_IS_OF_WORDS(RAPT_FORMAT_##NAME))                    \
            score_rows(a, RAPT_FORMAT_##NAME, rows);                                                             \
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
    of_rows[a->rows - 1][kernel_format(a->key_format)](a);
}

#endif
