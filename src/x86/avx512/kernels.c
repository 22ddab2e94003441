/* SPDX-License-Identifier: MIT */
#include "cpu.h"
#include "x86/amx/kind.h"
#include "x86/avx512/simd.h"
#include "x86/bf16/kind.h"
#include "x86/vbmi/kind.h"
#include "x86/halves/kind.h"

static const struct rapt_unit units[] = {{.isa = RAPT_ISA_AMX, .table = rapt_amx_table},
                                         {RAPT_ISA_AVX512_BF16, rapt_cpu_has_fast_bf16_dots, rapt_bf16_table},
                                         {.table = NULL}};

/* Other kernels take float8 where bytes are looked up in registers, and some rows where halves load fast. */
static void score_narrow_here(const struct rapt_score_args *args);
static void weigh_narrow_here(const struct rapt_weigh_args *args);
static void score_beside_here(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads);

#define RAPT_SCORE_NARROW score_narrow_here
#define RAPT_WEIGH_NARROW weigh_narrow_here
#define RAPT_SCORE_BESIDE score_beside_here
#define RAPT_TABLE avx512
#define RAPT_UNITS units
#include "generic/table.h"

static bool is_dense(const struct rapt_score_args *a) {
    return a->key_stride_bytes == rapt_format_row_bytes(a->key_format, a->head_dim);
}

/* Float32 rows with gaps come from memory too slowly for half squares to pay. */
static bool takes_half_squares(const struct rapt_score_args *a) {
    const bool is_faster = rapt_cpu_splits_vectors() ? RAPT_HAS_HALF_SQUARES(a->key_format, a->rows)
                                                     : RAPT_GAINS_BY_HALF_SQUARES(a->key_format, a->rows);
    return is_faster && rapt_cpu_loads_halves() && (a->key_format != RAPT_FORMAT_F32 || is_dense(a));
}

/* Two vectors of keys take long turns, for which float32 waits where it comes from memory, and so do one row or two of
 * 16 bits. Where tokens have gaps, so many share cache sets. */
static bool takes_two_vectors(const struct rapt_score_args *a) {
    enum { LEAST_ROWS = 3, MOST_F32_DIM = 128 };
    const bool is_f32 = a->key_format == RAPT_FORMAT_F32;
    const bool is_faster = a->exceeds_caches ? !is_f32 && a->rows >= LEAST_ROWS
                                             : is_dense(a) && (!is_f32 || a->head_dim <= MOST_F32_DIM);
    return is_faster && RAPT_HAS_TWO_VECTORS(a->key_format, a->rows) && rapt_cpu_loads_wide();
}

/* In short turns from memory: long rows, and short ones of bfloat16 whose heads take turns. */
static bool takes_one_vector(const struct rapt_score_args *a, int heads) {
    enum { LONG_DIM = 128 };
    const bool is_faster = a->head_dim >= LONG_DIM ? heads > 1 || a->rows == 1
                                                   : heads > 1 && a->rows == 1 && a->key_format == RAPT_FORMAT_BF16;
    return is_faster && a->exceeds_caches && RAPT_HAS_ONE_VECTOR(a->key_format, a->rows) && rapt_cpu_loads_wide();
}

/* A row that ends within a word is zero-padded, and zero times an infinite scale would be NaN. */
static bool is_looked_up_here(const struct rapt_score_args *a) {
    return is_float8(a->key_format) && rapt_cpu_looks_up_bytes() && (a->head_dim % 8 == 0 || !a->scales.scales);
}

static void score_narrow_here(const struct rapt_score_args *args) {
    if (is_looked_up_here(args))
        rapt_score_float8(args);
    else if (takes_two_vectors(args))
        rapt_score_two_vectors(args);
    else if (takes_half_squares(args))
        rapt_score_half_squares(args);
    else
        score_narrow(args);
}

static void weigh_narrow_here(const struct rapt_weigh_args *args) {
    if (is_float8(args->value_format) && rapt_cpu_looks_up_bytes())
        rapt_weigh_float8(args);
    else
        weigh_narrow(args);
}

static void score_beside_here(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh, int heads) {
    if (takes_one_vector(score, heads)) {
        rapt_score_beside_one_vector(score, weigh, heads);
    } else if (takes_two_vectors(score)) {
        rapt_score_beside_two_vectors(score, weigh, heads);
    } else if (takes_half_squares(score)) {
        rapt_score_beside_half_squares(score, weigh, heads);
    } else if (!is_float8(score->key_format)) {
        score_beside(score, weigh, heads);
    } else if (rapt_cpu_looks_up_bytes()) {
        rapt_score_beside_float8(score, weigh, heads);
    } else {
        score_then_weigh(score, weigh, heads);
    }
}
