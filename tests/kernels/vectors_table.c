/* SPDX-License-Identifier: MIT
 * The table of one simd.h: RAPT_VECTORS names it, RAPT_VECTORS_SIMD is its file. */
#include "kernels/vectors.h"

#include <string.h>

#include RAPT_VECTORS_SIMD

#include "generic/squares.h"

#define LANE_FUNCTION(name, ...)                                                                     \
    static void name(const float *p, const float *q, const float *r, float *result) {               \
        const vf32 a = v_load(p), b = v_load(q), c = v_load(r);                                      \
        (void)a, (void)b, (void)c;                                                                   \
        v_store(result, __VA_ARGS__);                                                                \
    }
#define MASK_FUNCTION(name, ...) LANE_FUNCTION(name, v_select(__VA_ARGS__, v_splat(1), v_splat(0)))

LANE_FUNCTION(add, v_add(a, b))
LANE_FUNCTION(sub, v_sub(a, b))
LANE_FUNCTION(mul, v_mul(a, b))
LANE_FUNCTION(divide, v_div(a, b))
LANE_FUNCTION(fused, v_fma(a, b, c))
LANE_FUNCTION(larger, v_larger(a, b))
LANE_FUNCTION(smaller, v_smaller(a, b))
LANE_FUNCTION(ceiling, v_ceil(a))
LANE_FUNCTION(absolute, v_abs(a))
LANE_FUNCTION(with_sign, v_with_sign(a, b))
MASK_FUNCTION(less, v_less(a, b))
MASK_FUNCTION(equal, v_equal(a, b))
MASK_FUNCTION(both, v_and(v_less(a, b), v_less(b, c)))
MASK_FUNCTION(either, v_or(v_less(a, b), v_less(b, c)))
MASK_FUNCTION(neither, v_not(v_less(a, b)))
LANE_FUNCTION(selected, v_select(v_less(a, b), b, c))
LANE_FUNCTION(shift_to_exponent, v_shift_to_exponent(a))

static void scalar_fma(const float *a, const float *b, const float *c, float *result) {
    for (int lane = 0; lane < VL; lane++)
        result[lane] = s_fma(a[lane], b[lane], c[lane]);
}

#define FMA_LANE_FUNCTION(number)                                                                    \
    static void fma_lane_##number(const float *four, const float *b, const float *c, float *result) { \
        const vfour f = v_four(four);                                                                \
        v_store(result, v_fma_lane(f, number, v_load(b), v_load(c)));                                \
    }
FMA_LANE_FUNCTION(0)
FMA_LANE_FUNCTION(1)
FMA_LANE_FUNCTION(2)
FMA_LANE_FUNCTION(3)

static void store_mask(vmask mask, float *result) { v_store(result, v_select(mask, v_splat(1), v_splat(0))); }

static void splat(float x, float *result) { v_store(result, v_splat(x)); }
static void iota(float *result) { v_store(result, v_iota()); }
static void load(const float *p, float *result) {
    const vf32 a = v_load(p);
    for (int lane = 0; lane < VL; lane++) /* not by v_store, which would then only be tested by itself */
        memcpy(&result[lane], (const char *)&a + (size_t)lane * sizeof(float), sizeof(float));
}
static void store(float *p, const float *a) {
    vf32 vector;
    memcpy(&vector, a, sizeof vector);
    v_store(p, vector);
}
static void load_n(const float *p, int n, float *result) { v_store(result, v_load_n(p, n)); }
static void store_n(float *p, const float *a, int n) { v_store_n(p, v_load(a), n); }
static void load_bool(const uint8_t *p, int n, float *result) { store_mask(v_load_bool(p, n), result); }
static int any(const uint8_t *p) { return v_any(v_load_bool(p, VL)); }
static uint32_t load_bools(const uint8_t *p, int n) { return s_load_bools(p, n); }
static void test_bit(const uint32_t *words, int bit, float *result) {
    store_mask(v_test_bit(v_load_bits(words), bit), result);
}

static void load_f16(const void *p, float *result) { v_store(result, v_load_f16(p)); }
static void splat_f16(const void *p, float *result) { v_store(result, v_splat_f16(p)); }
static void load_bf16(const void *p, float *result) { v_store(result, v_load_bf16(p)); }
static void load_int8(const void *p, float *result) { v_store(result, v_load_int8(p)); }
static void load_e4m3(const void *p, float *result) { v_store(result, v_load_e4m3(p)); }
static void load_e5m2(const void *p, float *result) { v_store(result, v_load_e5m2(p)); }
static void store_widened(const uint16_t *numbers, float unit, float *result) {
    for (int i = 0; i < 2; i++)
        v_store(result + i * VL, v_mul(v_load_f16(numbers + i * VL), v_splat(unit)));
}
static void f16_of_e4m3(const void *p, float *result) {
    uint16_t numbers[2 * VL];
    v_f16_of_e4m3(numbers, p);
    store_widened(numbers, 256, result);
}
static void f16_of_e5m2(const void *p, float *result) {
    uint16_t numbers[2 * VL];
    v_f16_of_e5m2(numbers, p);
    store_widened(numbers, 1, result);
}
static void load_nibbles(const uint8_t *p, int shift, const int8_t *codes, float *result) {
    v_store(result, shift ? v_load_nibbles(p, 4, codes) : v_load_nibbles(p, 0, codes));
}
static void load_fives(const uint8_t *p, int shift, uint32_t bits, float *result) {
    v_store(result, shift ? v_load_fives(p, 4, bits) : v_load_fives(p, 0, bits));
}
static void load_words(const char *const *rows, int64_t offset, uint32_t *result) {
    vbits words[4];
    v_load_words(words, rows, offset);
    memcpy(result, words, sizeof words);
}
static void gather_f16(const char *const *rows, int64_t offset, float *result) {
    v_store(result, v_gather_f16(rows, offset));
}

/* Byte and bit numbers are constants in kernels. */
static void byte_of(const uint32_t *p, int k, float *result) {
    const vbits words = v_load_bits(p);
    const vf32 bytes[4] = {v_byte_of(words, 0), v_byte_of(words, 1), v_byte_of(words, 2), v_byte_of(words, 3)};
    v_store(result, bytes[k]);
}
static void nibble_of(const uint32_t *p, int i, const int8_t *codes, float *result) {
    const vbits words = v_load_bits(p);
    const vf32 nibbles[8] = {v_nibble_of(words, 0, codes),  v_nibble_of(words, 4, codes),
                             v_nibble_of(words, 8, codes),  v_nibble_of(words, 12, codes),
                             v_nibble_of(words, 16, codes), v_nibble_of(words, 20, codes),
                             v_nibble_of(words, 24, codes), v_nibble_of(words, 28, codes)};
    v_store(result, nibbles[i / 4]);
}
static void codes_of(const uint32_t *p, int i, const int8_t *codes, float *result) {
    const vbits words = v_load_bits(p), bytes = i ? v_codes_of(words, 4, codes) : v_codes_of(words, 0, codes);
    memcpy(result, &bytes, sizeof bytes);
}
static void raise_bytes(const uint32_t *p, const uint32_t *bits, int i, float *result) {
    const vbits a = v_load_bits(p), b = v_load_bits(bits);
    const vbits raised[8] = {v_raise_bytes(a, b, 0),  v_raise_bytes(a, b, 4),  v_raise_bytes(a, b, 8),
                             v_raise_bytes(a, b, 12), v_raise_bytes(a, b, 16), v_raise_bytes(a, b, 20),
                             v_raise_bytes(a, b, 24), v_raise_bytes(a, b, 28)};
    memcpy(result, &raised[i / 4], sizeof *raised);
}
static void store_f16(uint16_t *p, const float *a) { v_store_f16(p, v_load(a)); }
static void store_bf16(uint16_t *p, const float *a) { v_store_bf16(p, v_load(a)); }

static void store_e4m3(uint8_t *p, const float *a) { v_store_e4m3(p, v_load(a)); }
static void store_e5m2(uint8_t *p, const float *a) { v_store_e5m2(p, v_load(a)); }
static void store_byte(uint8_t *p, const float *a) { v_store_byte(p, v_load(a)); }
static float largest(const float *a) { return s_largest(v_load(a)); }

static void store_square(const vf32 square[VL], float *result) {
    for (int i = 0; i < VL; i++)
        v_store(result + i * VL, square[i]);
}

static void transpose(const float *a, float *result) {
    vf32 square[VL];
    for (int i = 0; i < VL; i++)
        square[i] = v_load(a + i * VL);
    v_transpose(square);
    store_square(square, result);
}

static void load_square(const float *const *rows, int64_t offset, float *result) {
    vf32 square[VL];
    v_load_square(square, rows, offset);
    store_square(square, result);
}

static void load_square_by_halves(const float *const *rows, int64_t offset, float *result) {
    vf32 square[VL];
    v_load_square_by_halves(square, rows, offset);
    store_square(square, result);
}

static void widen_square(const uint16_t *numbers, float *result) {
    for (int i = 0; i < 2 * VL; i++)
        v_store(result + i * VL, v_load_f16(numbers + i * VL));
}

static void transpose_shorts(const char *const *rows, int64_t offset, float *result) {
    uint16_t numbers[2 * VL * VL];
    v_transpose_shorts(numbers, rows, offset);
    widen_square(numbers, result);
}

static void transpose_shorts_by_quarters(const char *const *rows, int64_t offset, float *result) {
    uint16_t numbers[2 * VL * VL];
    v_transpose_shorts_by_quarters(numbers, rows, offset);
    widen_square(numbers, result);
}

static void columns(const char *const *rows, int64_t offset, float *result) {
    vf32 a[VL];
    for (int first = 0; RAPT_LOADS_PARTS && first < 2 * VL; first += VL) {
        v_load_columns(a, rows, offset + 2 * first);
        for (int i = 0; i < VL; i++)
            v_store(result + (first + i) * VL, v_widen_column(a, i));
    }
    if (!RAPT_LOADS_PARTS)
        transpose_shorts(rows, offset, result);
}

static void even_bf16(const float *a, float *result) { v_store(result, v_even_bf16(v_load(a))); }
static void odd_bf16(const float *a, float *result) { v_store(result, v_odd_bf16(v_load(a))); }
static void evens(const float *a, float *result) { v_store(result, v_evens(v_load(a), v_load(a + VL))); }
static void odds(const float *a, float *result) { v_store(result, v_odds(v_load(a), v_load(a + VL))); }
static void zipped(const float *a, float *result) {
    v_store(result, v_zip_low(v_load(a), v_load(a + VL)));
    v_store(result + VL, v_zip_high(v_load(a), v_load(a + VL)));
}
static void round_f16(const float *a, float *result) { v_store(result, v_round_f16(v_load(a))); }
static void round_bf16(const float *a, float *result) { v_store(result, v_round_bf16(v_load(a))); }

#define PASTE(a, b) a##b
#define TABLE_OF(name) PASTE(vectors_of_, name)
#define TEXT(name) #name
#define TEXT_OF(name) TEXT(name)

extern const struct vector_table TABLE_OF(RAPT_VECTORS);
const struct vector_table TABLE_OF(RAPT_VECTORS) = {
    .name = TEXT_OF(RAPT_VECTORS),
    .lanes = VL,
    .lane = {[LANE_ADD] = add,
             [LANE_SUB] = sub,
             [LANE_MUL] = mul,
             [LANE_DIV] = divide,
             [LANE_FMA] = fused,
             [LANE_LARGER] = larger,
             [LANE_SMALLER] = smaller,
             [LANE_CEIL] = ceiling,
             [LANE_ABS] = absolute,
             [LANE_WITH_SIGN] = with_sign,
             [LANE_LESS] = less,
             [LANE_EQUAL] = equal,
             [LANE_AND] = both,
             [LANE_OR] = either,
             [LANE_NOT] = neither,
             [LANE_SELECT] = selected,
             [LANE_SHIFT_TO_EXPONENT] = shift_to_exponent,
             [LANE_SCALAR_FMA] = scalar_fma},
    .fma_lane = {fma_lane_0, fma_lane_1, fma_lane_2, fma_lane_3},
    .splat = splat,
    .iota = iota,
    .load = load,
    .store = store,
    .load_n = load_n,
    .store_n = store_n,
    .load_bool = load_bool,
    .any = any,
    .load_bools = load_bools,
    .test_bit = test_bit,
    .load_f16 = load_f16,
    .splat_f16 = splat_f16,
    .load_bf16 = load_bf16,
    .load_int8 = load_int8,
    .load_e4m3 = load_e4m3,
    .load_e5m2 = load_e5m2,
    .f16_of_e4m3 = f16_of_e4m3,
    .f16_of_e5m2 = f16_of_e5m2,
    .load_nibbles = load_nibbles,
    .load_fives = load_fives,
    .load_words = load_words,
    .gather_f16 = gather_f16,
    .byte_of = byte_of,
    .nibble_of = nibble_of,
    .codes_of = codes_of,
    .raise_bytes = raise_bytes,
    .store_f16 = store_f16,
    .store_bf16 = store_bf16,
    .store_e4m3 = store_e4m3,
    .store_e5m2 = store_e5m2,
    .store_byte = store_byte,
    .largest = largest,
    .transpose = transpose,
    .load_square = load_square,
    .load_square_by_halves = load_square_by_halves,
    .transpose_shorts = transpose_shorts,
    .transpose_shorts_by_quarters = transpose_shorts_by_quarters,
    .columns = columns,
    .even_bf16 = even_bf16,
    .odd_bf16 = odd_bf16,
    .evens = evens,
    .odds = odds,
    .zipped = zipped,
    .round_f16 = round_f16,
    .round_bf16 = round_bf16,
};
