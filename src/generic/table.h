/* SPDX-License-Identifier: MIT
 * The dispatch table of one instruction set. An ISA's kernels.c includes its
 * simd.h, defines RAPT_TABLE (as in isa.def) and RAPT_TABLE_ISA, then this. */
#if defined(__FAST_MATH__) || defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "the numeric order needs IEEE arithmetic: build without fast-math flags"
#endif

#include "generic/exp2.h"
#include "generic/score.h"
#include "generic/logits.h"
#include "generic/softmax.h"
#include "generic/weigh.h"
#include "generic/finish.h"
#include "generic/matmul.h"

#define RAPT_PASTE(a, b) a##b
#define RAPT_TABLE_OF(name) RAPT_PASTE(rapt_kernels_, name)
#define RAPT_TEXT(name) #name
#define RAPT_TEXT_OF(name) RAPT_TEXT(name)

const struct rapt_kernels RAPT_TABLE_OF(RAPT_TABLE) = {
    .name = RAPT_TEXT_OF(RAPT_TABLE),
    .isa = RAPT_TABLE_ISA,
    .lanes = VL,
    .tile_rows = TILE_ROWS,
    .narrow_rows = NARROW_ROWS,
    .wide = {.pack = pack_wide,
             .score = score_wide,
             .logits = logits_wide,
             .softmax = softmax_wide,
             .drop = drop_wide,
             .weigh = weigh_wide},
    .narrow = {.pack = pack_narrow,
               .score = score_narrow,
               .logits = logits_narrow,
               .softmax = softmax_narrow,
               .drop = drop_narrow,
               .weigh = weigh_narrow},
    .product = {.pack = pack_columns, .tile = product_tile, .few = {few_transposed, few_in_place}},
    .merge = merge,
    .finish = finish,
    .exponentials = exponentials,
    .survey = survey,
    .tanhs = tanhs,
    .log2s = log2s,
    .export_row = export_row,
    .all_finite = all_finite,
};
