/* SPDX-License-Identifier: MIT */
#include "cpu.h"
#include "x86/amx/kind.h"
#include "x86/avx512/simd.h"
#include "x86/bf16/kind.h"
#include "x86/vbmi/kind.h"

static const struct rapt_unit units[] = {{.isa = RAPT_ISA_AMX, .table = rapt_amx_table},
                                         {RAPT_ISA_AVX512_BF16, rapt_cpu_multiplies_pairs, rapt_bf16_table},
                                         {.table = NULL}};

/* Processors that look bytes up in registers take float8 otherwise. */
static void score_narrow_or_float8(const struct rapt_score_args *args);
static void weigh_narrow_or_float8(const struct rapt_weigh_args *args);
static void score_beside_or_float8(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh);

#define RAPT_SCORE_NARROW score_narrow_or_float8
#define RAPT_WEIGH_NARROW weigh_narrow_or_float8
#define RAPT_SCORE_BESIDE score_beside_or_float8
#define RAPT_TABLE avx512
#define RAPT_UNITS units
#include "generic/table.h"

static void score_narrow_or_float8(const struct rapt_score_args *args) {
    if (is_float8(args->key_format) && rapt_cpu_looks_up_bytes())
        rapt_score_float8(args);
    else
        score_narrow(args);
}

static void weigh_narrow_or_float8(const struct rapt_weigh_args *args) {
    if (is_float8(args->value_format) && rapt_cpu_looks_up_bytes())
        rapt_weigh_float8(args);
    else
        weigh_narrow(args);
}

static void score_beside_or_float8(const struct rapt_score_args *score, const struct rapt_weigh_args *weigh) {
    if (!is_float8(score->key_format)) {
        score_beside(score, weigh);
    } else if (rapt_cpu_looks_up_bytes()) {
        rapt_score_beside_float8(score, weigh);
    } else {
        score_then_weigh(score, weigh);
    }
}
