/* SPDX-License-Identifier: MIT
 * The vector operations of one simd.h as functions on memory, so that one test can call every instruction set's.
 * vectors_table.c is compiled once for each, with its flags. */
#ifndef RAPT_TESTS_VECTORS_H
#define RAPT_TESTS_VECTORS_H

#include <stdint.h>

enum { MOST_LANES = 16, MOST_BOOLS = 32 };

/* Operations lane by lane on up to three vectors a, b, c. Masks come out as 1 and 0. */
enum lane_operation {
    LANE_ADD,
    LANE_SUB,
    LANE_MUL,
    LANE_DIV,
    LANE_FMA,
    LANE_LARGER,
    LANE_SMALLER,
    LANE_CEIL,
    LANE_ABS,
    LANE_WITH_SIGN,
    LANE_LESS,
    LANE_EQUAL,
    LANE_AND,    /* v_and(a < b, b < c) */
    LANE_OR,     /* v_or(a < b, b < c) */
    LANE_NOT,    /* v_not(a < b) */
    LANE_SELECT, /* v_select(a < b, b, c) */
    LANE_SHIFT_TO_EXPONENT,
    LANE_SCALAR_FMA, /* s_fma */
    LANE_OPERATIONS
};

/* Every array has `lanes` elements unless noted. */
struct vector_table {
    const char *name;
    int lanes;
    void (*lane[LANE_OPERATIONS])(const float *a, const float *b, const float *c, float *result);
    void (*fma_lane[4])(const float *four, const float *b, const float *c, float *result); /* four [4] */
    void (*splat)(float x, float *result);
    void (*iota)(float *result);
    void (*load)(const float *p, float *result);
    void (*store)(float *p, const float *a);
    void (*load_n)(const float *p, int n, float *result);           /* p [n] */
    void (*store_n)(float *p, const float *a, int n);               /* p [n] */
    void (*load_bool)(const uint8_t *p, int n, float *result);      /* p [n]; the mask as 1 and 0 */
    int (*any)(const uint8_t *p);
    uint32_t (*load_bools)(const uint8_t *p, int n);                /* p [n], n <= MOST_BOOLS */
    void (*test_bit)(const uint32_t *words, int bit, float *result); /* the mask as 1 and 0 */
    void (*load_f16)(const void *p, float *result);
    void (*splat_f16)(const void *p, float *result); /* p [1] */
    void (*load_bf16)(const void *p, float *result);
    void (*load_int8)(const void *p, float *result);
    void (*load_e4m3)(const void *p, float *result);
    void (*load_e5m2)(const void *p, float *result);
    void (*f16_of_e4m3)(const void *p, float *result); /* p [2][lanes], result [2][lanes] */
    void (*f16_of_e5m2)(const void *p, float *result);
    void (*load_nibbles)(const uint8_t *p, int shift, const int8_t *codes, float *result); /* codes [16] */
    void (*load_fives)(const uint8_t *p, int shift, uint32_t bits, float *result);
    void (*load_words)(const char *const *rows, int64_t offset, uint32_t *result); /* result [4][lanes] */
    void (*gather_f16)(const char *const *rows, int64_t offset, float *result);
    void (*byte_of)(const uint32_t *words, int k, float *result);
    void (*nibble_of)(const uint32_t *words, int i, const int8_t *codes, float *result);
    void (*codes_of)(const uint32_t *words, int i, const int8_t *codes, float *result);
    void (*raise_bytes)(const uint32_t *words, const uint32_t *bits, int i, float *result);
    void (*store_f16)(uint16_t *p, const float *a);
    void (*store_bf16)(uint16_t *p, const float *a);
    void (*store_e4m3)(uint8_t *p, const float *a);
    void (*store_e5m2)(uint8_t *p, const float *a);
    void (*store_byte)(uint8_t *p, const float *a);
    float (*largest)(const float *a);
    void (*transpose)(const float *a, float *result);               /* both [lanes][lanes] */
    void (*load_square)(const float *const *rows, int64_t offset, float *result); /* result [lanes][lanes] */
    void (*load_square_by_halves)(const float *const *rows, int64_t offset, float *result); /* likewise */
    void (*transpose_shorts)(const char *const *rows, int64_t offset, float *result); /* likewise */
    void (*transpose_shorts_by_quarters)(const char *const *rows, int64_t offset, float *result);
    void (*columns)(const char *const *rows, int64_t offset, float *result);
    void (*even_bf16)(const float *a, float *result);
    void (*odd_bf16)(const float *a, float *result);
    void (*evens)(const float *a, float *result); /* a [2][lanes] */
    void (*odds)(const float *a, float *result);  /* likewise */
    void (*zipped)(const float *a, float *result); /* a, result [2][lanes] */
    void (*round_f16)(const float *a, float *result);
    void (*round_bf16)(const float *a, float *result);
};

#endif
