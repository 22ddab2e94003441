/* SPDX-License-Identifier: MIT
 * Float8 to bfloat16, exactly, by tables: for processors that look bytes up in registers. */
#ifndef RAPT_GENERIC_FLOAT8_H
#define RAPT_GENERIC_FLOAT8_H

#include "generic/stored.h"

/* The bfloat16 of a code without its sign. */
#define RAPT_BF16_OF_E4M3(code)                                                                                  \
    ((code) == 0x7f ? RAPT_BF16_NAN                                                                              \
     : (code) >= 8  ? 0x3c00 + (code) * 16                                                                       \
     : (code) >= 4  ? 0x3b80 + (code) * 32                                                                       \
     : (code) >= 2  ? 0x3b00 + (code) * 64                                                                       \
     : (code) == 1  ? 0x3b00                                                                                     \
                    : 0)
#define RAPT_BF16_OF_E5M2(code)                                                                                  \
    ((code) > 0x7c    ? RAPT_BF16_NAN                                                                            \
     : (code) == 0x7c ? 0x7f80                                                                                   \
     : (code) >= 4    ? 0x3800 + (code) * 32                                                                     \
     : (code) >= 2    ? 0x3780 + (code) * 64                                                                     \
     : (code) == 1    ? 0x3780                                                                                   \
                      : 0)
#define RAPT_BF16_NAN 0x7fc0

#define RAPT_HIGH_OF_E4M3(code) RAPT_BF16_OF_E4M3(code) >> 8
#define RAPT_LOW_OF_E4M3(code) RAPT_BF16_OF_E4M3(code) & 0xff
#define RAPT_HIGH_OF_E5M2(code) RAPT_BF16_OF_E5M2(code) >> 8
#define RAPT_LOW_OF_E5M2(code) RAPT_BF16_OF_E5M2(code) & 0xff

#define RAPT_CODES_4(X, n) X((n)), X((n) + 1), X((n) + 2), X((n) + 3)
#define RAPT_CODES_16(X, n)                                                                                      \
    RAPT_CODES_4(X, n), RAPT_CODES_4(X, (n) + 4), RAPT_CODES_4(X, (n) + 8), RAPT_CODES_4(X, (n) + 12)
#define RAPT_CODES_64(X, n)                                                                                      \
    RAPT_CODES_16(X, n), RAPT_CODES_16(X, (n) + 16), RAPT_CODES_16(X, (n) + 32), RAPT_CODES_16(X, (n) + 48)
#define RAPT_TABLE_OF_CODES(X) {RAPT_CODES_64(X, 0), RAPT_CODES_64(X, 64)}

/* Never called, but loops name them on all ISAs. */
#ifndef RAPT_LOOKS_UP_BYTES
#define RAPT_LOOKS_UP_BYTES 0
RAPT_INLINE vbits v_look_up(vbits codes, const uint8_t table[128]) { return (void)table, codes; }
RAPT_INLINE vbits v_with_top_bits(vbits bytes, vbits codes) { return (void)codes, bytes; }
RAPT_INLINE vbits v_load_codes(const uint8_t *p, int count) {
    return (void)count, v_load_bits((const uint32_t *)(const void *)p);
}
RAPT_INLINE void v_load_code_pairs(vbits a[4], const char *const *rows, int64_t offset) {
    v_load_words(a, rows, offset);
}
RAPT_INLINE vf32 v_join_low(vbits high, vbits low) { return (void)high, (void)low, v_splat(0); }
RAPT_INLINE vf32 v_join_high(vbits high, vbits low) { return (void)high, (void)low, v_splat(0); }
#endif

/* Types that are looked up. */
RAPT_INLINE bool is_looked_up(int format) { return RAPT_LOOKS_UP_BYTES && is_float8(format); }

/* The type whose kernels take a format: looked-up float8 types share them, with a table each. */
RAPT_INLINE int kernel_format(int format) { return is_looked_up(format) ? RAPT_FORMAT_F8_E4M3 : format; }

/* By code without sign. */
struct float8_table {
    uint8_t high[128], low[128];
    bool is_e4m3;
};

RAPT_INLINE const struct float8_table *float8_table_of(int format) {
    static const struct float8_table of_e4m3 = {RAPT_TABLE_OF_CODES(RAPT_HIGH_OF_E4M3),
                                                RAPT_TABLE_OF_CODES(RAPT_LOW_OF_E4M3), true};
    static const struct float8_table of_e5m2 = {RAPT_TABLE_OF_CODES(RAPT_HIGH_OF_E5M2),
                                                RAPT_TABLE_OF_CODES(RAPT_LOW_OF_E5M2), false};
    return format == RAPT_FORMAT_F8_E4M3 ? &of_e4m3 : &of_e5m2;
}

/* High and low bytes of the bfloat16 of 4 * VL codes, one code per byte. */
struct float8_parts {
    vbits high, low;
};

RAPT_INLINE struct float8_parts float8_parts_of(const struct float8_table *table, vbits codes) {
    return (struct float8_parts){v_with_top_bits(v_look_up(codes, table->high), codes), v_look_up(codes, table->low)};
}

/* Number n of every four. */
RAPT_INLINE vf32 float8_number(struct float8_parts parts, int n) {
    const vf32 two = n < 2 ? v_join_low(parts.high, parts.low) : v_join_high(parts.high, parts.low);
    return n % 2 == 0 ? v_even_bf16(two) : v_odd_bf16(two);
}

/* Vectors of numbers: of each two, even and odd ones. Converting a single vector is cheaper than looking it up. */
RAPT_INLINE void load_float8(const struct float8_table *table, vf32 *x, const uint8_t *codes, int vectors) {
    if (vectors == 1) {
        x[0] = table->is_e4m3 ? v_load_e4m3(codes) : v_load_e5m2(codes);
        return;
    }
    RAPT_UNROLL for (int v = 0; v < vectors; v += 4) {
        const int here = vectors - v < 4 ? vectors - v : 4;
        const struct float8_parts parts = float8_parts_of(table, v_load_codes(codes + v * VL, here * VL));
        RAPT_UNROLL for (int i = 0; i < here; i++)
            x[v + i] = float8_number(parts, i);
    }
}

#endif
