/* SPDX-License-Identifier: MIT
 * Float8 numbers as bfloat16, which has them all, by tables: where processors look bytes up in registers. */
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

/* Never called: loops name these for all instruction sets. */
#ifndef RAPT_LOOKS_UP_BYTES
#define RAPT_LOOKS_UP_BYTES 0
RAPT_INLINE vbits v_look_up(vbits codes, const uint8_t table[128]) { return (void)table, codes; }
RAPT_INLINE vbits v_with_top_bits(vbits bytes, vbits codes) { return (void)codes, bytes; }
RAPT_INLINE vbits v_load_codes(const uint8_t *p, int count) {
    return (void)count, v_load_bits((const uint32_t *)(const void *)p);
}
RAPT_INLINE vf32 v_join_words(vbits high, vbits low, int k) { return (void)high, (void)low, v_splat((float)k); }
RAPT_INLINE vf32 v_join_quarter(vbits high, vbits low, int k) { return (void)high, (void)low, v_splat((float)k); }
#endif

/* Types that are looked up. */
RAPT_INLINE bool is_looked_up(int format) { return RAPT_LOOKS_UP_BYTES && is_float8(format); }

/* Of 4 * VL codes, one to a byte: the upper and the lower byte of their bfloat16. */
struct float8_parts {
    vbits high, low;
};

RAPT_INLINE struct float8_parts float8_parts_of(int format, vbits codes) {
    static const uint8_t high_of_e4m3[128] = RAPT_TABLE_OF_CODES(RAPT_HIGH_OF_E4M3);
    static const uint8_t low_of_e4m3[128] = RAPT_TABLE_OF_CODES(RAPT_LOW_OF_E4M3);
    static const uint8_t high_of_e5m2[128] = RAPT_TABLE_OF_CODES(RAPT_HIGH_OF_E5M2);
    static const uint8_t low_of_e5m2[128] = RAPT_TABLE_OF_CODES(RAPT_LOW_OF_E5M2);
    const bool is_e4m3 = format == RAPT_FORMAT_F8_E4M3;
    return (struct float8_parts){v_with_top_bits(v_look_up(codes, is_e4m3 ? high_of_e4m3 : high_of_e5m2), codes),
                                 v_look_up(codes, is_e4m3 ? low_of_e4m3 : low_of_e5m2)};
}

#endif
