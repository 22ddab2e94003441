/* SPDX-License-Identifier: MIT
 * Order 2 of bfloat16 by the dot products of AVX512_BF16. */
#include "x86/avx512/simd.h"

#include <limits.h>

#include "x86/bf16/answers.h"
#include "x86/bf16/few.h"
#include "x86/bf16/kind.h"
#include "x86/unit16/once.h"

static const struct rapt_tile_kind dots_of_bf16 = {.name = "dots",
                                                   .most_rows = INT_MAX,
                                                   .rows = DOTS_TILE,
                                                   .row_step = DOTS_TILE,
                                                   .row_group = 1,
                                                   .piece_keys = RAPT_BLOCK_KEYS,
                                                   .keeps_places = true,
                                                   .panel_bytes = panel_bytes_dots,
                                                   .scores_bytes = scores_bytes_dots,
                                                   .block = block_dots,
                                                   .pack_stored = pack_queries_dots,
                                                   .packed_bytes = packed_bytes_dots,
                                                   .pack_half = {pack_keys_dots, pack_values_dots},
                                                   .close = unit16_close};

static const struct rapt_tile_kind few_dots_of_bf16 = {.name = "few",
                                                       .most_rows = DOTS_TILE,
                                                       .rows = DOTS_TILE,
                                                       .row_step = DOTS_TILE,
                                                       .row_group = 1,
                                                       .piece_keys = RAPT_BLOCK_KEYS,
                                                       .streams = true,
                                                       .keeps_places = true,
                                                       .block_turn_rows = DOTS_TILE,
                                                       .panel_bytes = panel_bytes_dots,
                                                       .scores_bytes = scores_bytes_dots_few,
                                                       .block = block_dots_few,
                                                       .pack_stored = pack_queries_dots,
                                                       .close = unit16_close};

static bool add_dots(struct rapt_table *table) {
    if (!dots_are_usable())
        return false;
    table->name = "avx512_bf16";
    table->isa = RAPT_ISA_AVX512_BF16;
    table->kinds[RAPT_WIDE] = dots_of_bf16;
    table->kinds[RAPT_FEW] = few_dots_of_bf16;
    table->kinds[RAPT_NARROW].most_rows = 0; /* but weights use its scores */
    return true;
}

const struct rapt_table *rapt_bf16_table(const struct rapt_table *chains, int type) {
    static struct unit16_once once;
    return type == RAPT_OF_BF16 ? unit16_once(&once, chains, add_dots) : NULL;
}
