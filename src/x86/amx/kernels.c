/* SPDX-License-Identifier: MIT
 * Order 2 of bfloat16 and order 3 on the matrix unit of x86. */
#include "x86/avx512/simd.h"

#include "x86/amx/kinds.h"
#include "x86/amx/split_pair.h"

static const struct rapt_tile_kind tiles_of_parts = {AMX_KIND("tiles", INT_MAX, AMX_TILE),
                                                     .panel_bytes = panel_bytes_split,
                                                     .scores_bytes = scores_bytes_split,
                                                     .block = block_amx_split,
                                                     .pack = pack_queries_split,
                                                     .packed_bytes = packed_bytes_split,
                                                     .pack_half = {pack_keys_split, pack_values_split}};

static bool add_tiles_of_parts(struct rapt_table *table) {
    if (!amx_is_usable())
        return false;
    name_after_unit(table);
    struct rapt_tile_kind tiles = tiles_of_parts;
    tiles.close = table->kinds[RAPT_WIDE].close; /* the lanes of l lie as those of chains */
    table->kinds[RAPT_WIDE] = tiles;
    table->kinds[RAPT_FEW].most_rows = 0;
    table->kinds[RAPT_NARROW].most_rows = 0; /* but weights use its scores */
    return true;
}

const struct rapt_table *rapt_amx_table(const struct rapt_table *chains, int type) {
    static struct unit16_once of_bf16, of_f32;
    return type == RAPT_OF_BF16  ? unit16_once(&of_bf16, chains, add_tiles)
           : type == RAPT_OF_F32 ? unit16_once(&of_f32, chains, add_tiles_of_parts)
                                 : rapt_amx_table_of_f16(chains);
}
