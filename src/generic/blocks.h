/* SPDX-License-Identifier: MIT
 * Blocks of VL rows, where lanes are rows: bytes are transposed as 32-bit words, then widened one number at a time. */
#ifndef RAPT_GENERIC_BLOCKS_H
#define RAPT_GENERIC_BLOCKS_H

#include "generic/stored.h"

/* v_byte_of returns a byte over this. */
static const float scale_of_bytes = 0x1p-24f;

RAPT_INLINE bool is_of_bytes(int format) { return format == RAPT_FORMAT_Q8_0 || format == RAPT_FORMAT_I8; }
RAPT_INLINE bool has_fifth_bits(int format) { return format == RAPT_FORMAT_Q5_0 || format == RAPT_FORMAT_Q5_1; }
RAPT_INLINE bool is_of_nibbles(int format) {
    return format == RAPT_FORMAT_Q4_0 || format == RAPT_FORMAT_Q4_1 || format == RAPT_FORMAT_IQ4_NL ||
           has_fifth_bits(format);
}
RAPT_INLINE bool has_minimum(int format) { return format == RAPT_FORMAT_Q4_1 || format == RAPT_FORMAT_Q5_1; }

/* With long vectors, looking up one number at a time is cheaper than four bytes at once, then extracting one. */
RAPT_INLINE bool is_by_nibbles(int format) { return is_of_nibbles(format) && !has_fifth_bits(format) && VL >= 16; }

/* 32 int8 or nibbles of each of VL rows, mostly a block with its own scale; bytes are transposed as words. fifth: bit n
 * is that of number n. */
struct blocks {
    vbits word[8], fifth;
    vf32 scale, minimum;
};

/* From `byte` on. scale: for int8. */
RAPT_INLINE struct blocks load_blocks(int format, const char *const *rows, int64_t byte, vf32 scale) {
    const int scales = format == RAPT_FORMAT_I8 ? 0 : has_minimum(format) ? 4 : 2; /* bytes */
    const int head = scales + (has_fifth_bits(format) ? 4 : 0);
    struct blocks blocks = {.scale = scales ? v_gather_f16(rows, byte) : scale,
                            .minimum = has_minimum(format) ? v_gather_f16(rows, byte + 2) : v_splat(0)};
    if (has_fifth_bits(format)) {
        vbits words[4];
        v_load_words(words, rows, byte + scales);
        blocks.fifth = words[0];
    }
    if (scales && !is_by_nibbles(format))
        blocks.scale = v_mul(blocks.scale, v_splat(scale_of_bytes));
    for (int c = 0; c < (is_of_bytes(format) ? 8 : 4); c += 4)
        v_load_words(blocks.word + c, rows, byte + head + 4 * c);
    return blocks;
}

RAPT_INLINE const int8_t *codes_of_nibbles(int format) {
    return has_minimum(format)          ? codes_of_q4_1
           : format == RAPT_FORMAT_Q4_0 ? codes_of_q4_0
           : format == RAPT_FORMAT_Q5_0 ? codes_of_q5_0
                                        : codes_of_iq4_nl;
}

/* Numbers 4 * c ... 4 * c + 3 of each row, as int8. */
RAPT_INLINE vbits bytes_of_blocks(int format, const struct blocks *blocks, int c) {
    if (is_of_bytes(format))
        return blocks->word[c];
    const vbits bytes = v_codes_of(blocks->word[c % 4], c / 4 * 4, codes_of_nibbles(format));
    return has_fifth_bits(format) ? v_raise_bytes(bytes, blocks->fifth, 4 * c) : bytes;
}

/* Number n of each row. */
RAPT_INLINE vf32 number_of_blocks(int format, const struct blocks *blocks, int n) {
    const vf32 number = is_by_nibbles(format) ? v_nibble_of(blocks->word[n % 16 / 4], n % 4 * 8 + n / 16 * 4,
                                                            codes_of_nibbles(format))
                                              : v_byte_of(bytes_of_blocks(format, blocks, n / 4), n % 4);
    return has_minimum(format) ? v_fma(number, blocks->scale, blocks->minimum) : v_mul(number, blocks->scale);
}

RAPT_INLINE bool is_of_blocks(int format) { return format == RAPT_FORMAT_Q8_0 || is_of_nibbles(format); }

#endif
