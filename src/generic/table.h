/* SPDX-License-Identifier: MIT
 * The dispatch table of one instruction set. An ISA's kernels.c includes its
 * simd.h, defines RAPT_TABLE (as in isa.def), then this. */
#if defined(__FAST_MATH__) || defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "the numeric order needs IEEE arithmetic: build without fast-math flags"
#endif

#include <limits.h>

#include "attend/block.h"
#include "isa.h"
#include "generic/exp2.h"
#include "generic/score.h"
#include "generic/score_words.h"
#include "generic/score_stored.h"
#include "generic/logits.h"
#include "generic/survey.h"
#include "generic/softmax.h"
#include "generic/weigh.h"
#include "generic/weigh_narrow.h"
#include "generic/beside.h"
#include "generic/few.h"
#include "generic/few_filled.h"
#include "generic/few_stored.h"
#include "generic/finish.h"
#include "generic/matmul.h"
#include "generic/rotary.h"
#include "generic/quantise.h"

/* The rules of README.md for the constants of a simd.h. */
_Static_assert(VL >= 1 && 16 % VL == 0, "VL divides 16");
_Static_assert(SCORE_KEYS >= 2, "a panel of keys is halved");
_Static_assert(SCORE_DIMS >= 1 && SCORE_DIMS <= 4, "SCORE_DIMS is 1 ... 4");
_Static_assert((int)SCORE_VECTORS >= (int)FILLED_VECTORS, "filled tiles have no more vectors of rows than wide ones");
_Static_assert(TILE_ROWS >= 3 && TILE_ROWS <= (int)RAPT_MAX_TILE_ROWS, "a wide tile has 3 ... 64 rows");
_Static_assert(WEIGH_ROWS >= 4 && WEIGH_ROWS >= WEIGH_ROWS_3 && WEIGH_ROWS >= NARROW_ROWS, "accumulators fit sum");
_Static_assert(NARROW_ROWS >= 1 && NARROW_ROWS <= 12, "NARROW_ROWS is 1 ... 12");
_Static_assert((NARROW_FILLS | 1) == 1 && (int)NARROW_MOST >= (int)NARROW_ROWS, "a vector has more rows than those");
_Static_assert((int)NARROW_ROWS <= (int)FEW_ROWS, "chains of a narrow tile fit the registers of few");
_Static_assert(NARROW_VECTORS == 2 || NARROW_VECTORS == 4, "some rows take two vectors of keys, others all");
_Static_assert((int)STORED_KEYS <= (int)ROW_SCALES && (int)STORED_AHEAD <= (int)ROW_SCALES, "scales of a panel fit");
_Static_assert(EXP_WAYS >= 1, "EXP_WAYS is at least 1");
_Static_assert((WEIGH_BY_LANE | 1) == 1 && (SCORE_BY_LANE | 1) == 1, "0 or 1");

#define RAPT_PASTE(a, b) a##b
#define RAPT_TABLE_OF(name) RAPT_PASTE(rapt_table_, name)
#define RAPT_NUMBER_OF(name) RAPT_PASTE(RAPT_ISA_NUMBER_, name)
#define RAPT_TEXT(name) #name
#define RAPT_TEXT_OF(name) RAPT_TEXT(name)

/* What all orders share. */
#define RAPT_SHARED_SLOTS                                                                                           \
    .product = {.columns = TILE_ROWS,                                                                               \
    .few_rows = PRODUCT_ROWS,                                                                                       \
    .pack = {pack_weight_rows, pack_weight_columns},                                                                \
    .tile = product_tile,                                                                                           \
    .few = {product_transposed, product_in_place}},                                                                 \
    .stage = stage,                                                                                                 \
    .store = store,                                                                                                 \
    .angles = angles,                                                                                               \
    .rotate = {[RAPT_PAIR_HALVES] = rotate_halves, [RAPT_PAIR_INTERLEAVED] = rotate_interleaved},                   \
    .store_states = store_states,                                                                                   \
    .exponentials = exponentials,                                                                                   \
    .survey = survey,                                                                                               \
    .tanhs = tanhs,                                                                                                 \
    .log2s = log2s,                                                                                                 \
    .export_row = export_row,                                                                                       \
    .all_finite = all_finite

#ifndef RAPT_WITHOUT_UNITS
#include "generic/unit_table.h"

/* Order 2 by chains of FMAs (functions in unit.c): few rows against keys and values in place, any number of rows
 * against packed ones. */
#define RAPT_UNIT_KIND(kind, most, tile_rows, suffix)                                                               \
    .name = kind,                                                                                                   \
    .most_rows = (most),                                                                                            \
    .rows = (tile_rows),                                                                                            \
    .row_step = WEIGH_ROWS,                                                                                         \
    .row_group = 1,                                                                                                 \
    .piece_keys = RAPT_BLOCK_KEYS,                                                                                  \
    .keeps_places = true,                                                                                           \
    .panel_bytes = RAPT_UNIT(panel_bytes##suffix),                                                                  \
    .pack = RAPT_UNIT(pack##suffix),                                                                                \
    .score = RAPT_UNIT(score##suffix),                                                                              \
    .logits = logits_narrow,                                                                                        \
    .close = RAPT_UNIT(close)
#define RAPT_UNIT_IN_PLACE(kind, most, tile_rows, least)                                                            \
    {RAPT_UNIT_KIND(kind, most, tile_rows, ),                                                                       \
     .least_keys = (least),                                                                                         \
     .streams = true,                                                                                               \
     .takes_runs = true,                                                                                            \
     .block_turn_rows = VL > 1 ? (tile_rows) : 0,                                                                   \
     .beside_rows = {[RAPT_FORMAT_BF16] = UNIT_BESIDE(most), [RAPT_FORMAT_F16] = UNIT_BESIDE(most)},                \
     .scores_bytes = RAPT_UNIT(scores_bytes_in_place),                                                              \
     .block = RAPT_UNIT(block_in_place)}
#define RAPT_UNIT_PACKED(kind, most, tile_rows, suffix)                                                             \
    {RAPT_UNIT_KIND(kind, most, tile_rows, suffix),                                                                 \
     .scores_bytes = RAPT_UNIT(scores_bytes##suffix),                                                               \
     .block = RAPT_UNIT(block),                                                                                     \
     .packed_bytes = RAPT_UNIT(packed_bytes##suffix),                                                               \
     .pack_half = {RAPT_UNIT(pack_keys), RAPT_UNIT(pack_values)}}

enum {
    UNIT_TILE_ROWS = 24 /* queries and a panel of keys fit L1 */
};
/* Few rows, if memory-bound; shorter vectors are slower in turns. */
#define UNIT_BESIDE(most) (FLUSHES && VL >= 16 && (most) == WEIGH_ROWS ? WEIGH_ROWS : 0)
_Static_assert(UNIT_TILE_ROWS % WEIGH_ROWS == 0, "tiles are filled");

static const struct rapt_table unit_table = {
    .name = RAPT_TEXT_OF(RAPT_TABLE),
    .isa = (rapt_isa)RAPT_NUMBER_OF(RAPT_TABLE),
    .kinds = {[RAPT_NARROW] = RAPT_UNIT_IN_PLACE("narrow", WEIGH_ROWS, WEIGH_ROWS, 0),
              [RAPT_FEW] = RAPT_UNIT_IN_PLACE("few", 2 * WEIGH_ROWS, 2 * WEIGH_ROWS, RAPT_BLOCK_KEYS),
              [RAPT_WIDE] = RAPT_UNIT_PACKED("wide", INT_MAX, UNIT_TILE_ROWS, )},
    RAPT_SHARED_SLOTS,
    .merge = merge_unit,
    .finish = finish_unit,
    .load_states = load_states_unit,
    .rounded = RAPT_UNIT(rounded),
};

/* Order 3. */
static const struct rapt_table split_table = {
    .name = RAPT_TEXT_OF(RAPT_TABLE),
    .isa = (rapt_isa)RAPT_NUMBER_OF(RAPT_TABLE),
    .kinds = {[RAPT_NARROW] = RAPT_UNIT_PACKED("narrow", WEIGH_ROWS, WEIGH_ROWS, _split),
              [RAPT_FEW] = RAPT_UNIT_PACKED("few", WEIGH_ROWS, WEIGH_ROWS, _split),
              [RAPT_WIDE] = RAPT_UNIT_PACKED("wide", INT_MAX, UNIT_TILE_ROWS, _split)},
    RAPT_SHARED_SLOTS,
    .merge = merge,
    .finish = finish,
    .load_states = load_states,
};
#endif

/* Unless kernels.c defines slots that hand types on. */
#ifndef RAPT_SCORE_NARROW
#define RAPT_SCORE_NARROW score_narrow
#define RAPT_WEIGH_NARROW weigh_narrow
#define RAPT_SCORE_BESIDE score_beside
#endif

/* Least rows that copy keys and values that evict each other (docs/performance/prefill.md): measured with 8 lanes. */
enum { COPIED_ROWS = VL == 8 ? 32 : 192 };

const struct rapt_table RAPT_TABLE_OF(RAPT_TABLE) = {
    .name = RAPT_TEXT_OF(RAPT_TABLE),
    .isa = (rapt_isa)RAPT_NUMBER_OF(RAPT_TABLE),
    .kinds = {[RAPT_NARROW] = {.name = "narrow",
                               .most_rows = NARROW_ROWS,
                               .turn_rows = NARROW_MOST,
                               .rows = NARROW_MOST,
                               .row_step = NARROW_MOST,
                               .row_group = 1,
                               .piece_keys = NARROW_PIECE,
                               .streams = true,
                               .takes_runs = true,
                               .formats = STORED_FORMATS,
                               .beside_rows = {RAPT_BESIDE_FORMATS(RAPT_BESIDE_ROWS)},
                               .turn_keys = TURN_KEYS,
                               .beside_single_head = VL < 16, /* with 16 lanes plan/turns.c decides */
                               .panel_bytes = panel_bytes_narrow,
                               .scores_bytes = scores_bytes_narrow,
                               .block = rapt_block_by_steps,
                               .pack = pack_narrow,
                               .score = RAPT_SCORE_NARROW,
                               .logits = logits_narrow,
                               .softmax = softmax_narrow,
                               .drop = drop_narrow,
                               .weigh = RAPT_WEIGH_NARROW,
                               .score_beside = VL > 1 ? RAPT_SCORE_BESIDE : NULL},
              [RAPT_FEW] = {.name = "few",
                            .most_rows = FEW_MOST,
                            .least_keys = RAPT_BLOCK_KEYS,
                            .rows = RAPT_MAX_TILE_ROWS,
                            .row_step = RAPT_MAX_TILE_ROWS,
                            .row_group = VL,
                            .piece_keys = NARROW_PIECE,
                            .streams = true,
                            .formats = FEW_FORMATS,
                            .step_turn_keys = VL > 1 ? FEW_TURN : 0,
                            .panel_bytes = panel_bytes_few,
                            .scores_bytes = scores_bytes_few,
                            .block = rapt_block_by_steps,
                            .pack = pack_few,
                            .score = score_few,
                            .logits = logits_few,
                            .softmax = softmax_few,
                            .drop = drop_few,
                            .weigh = weigh_few},
              [RAPT_WIDE] = {.name = "wide",
                             .most_rows = INT_MAX,
                             .rows = TILE_ROWS,
                             .row_step = VL,
                             .row_group = VL,
                             .piece_keys = RAPT_BLOCK_KEYS,
                             .copied_rows = COPIED_ROWS,
                             .formats = 1 << RAPT_FORMAT_F32,
                             .panel_bytes = panel_bytes_wide,
                             .scores_bytes = scores_bytes_wide,
                             .block = rapt_block_by_steps,
                             .pack = pack_wide,
                             .score = score_wide,
                             .logits = logits_wide,
                             .softmax = softmax_wide,
                             .drop = drop_wide,
                             .weigh = weigh_wide}},
    RAPT_SHARED_SLOTS,
    .merge = merge,
    .finish = finish,
    .load_states = load_states,
#ifndef RAPT_WITHOUT_UNITS
    .of_unit = {[RAPT_OF_BF16] = &unit_table, [RAPT_OF_F16] = &unit_table, [RAPT_OF_F32] = &split_table},
#endif
#ifdef RAPT_UNITS
    .units = RAPT_UNITS,
#endif
};
