/* SPDX-License-Identifier: MIT
 * Orders 2 and 3 on the matrix unit of x86. */
#include "x86/avx512/simd.h"

#include <limits.h>

#include "x86/amx/answers.h"
#include "x86/amx/few.h"
#include "x86/amx/pair.h"
#include "x86/amx/split_pair.h"
#include "x86/unit16/once.h"

/* What was configured before, where alpha of rows beyond those of a tile would be. */
static struct tile_config *configured(const struct rapt_task *task) {
    _Static_assert((RAPT_MAX_TILE_ROWS - AMX_TILE) * sizeof(float) >= sizeof(struct tile_config), "there is room");
    return (struct tile_config *)(void *)(task->alpha + AMX_TILE);
}

static void enter_amx(const struct rapt_task *task) {
    const struct tile_config whole = tiles_whole();
    tiles_store_config(configured(task));
    tiles_load_config(&whole);
}

static void leave_amx(const struct rapt_task *task) { tiles_restore(configured(task)); }

#define AMX_KIND(kind, most, height)   \
    .name = (kind),                    \
    .most_rows = (most),               \
    .rows = (height),                  \
    .row_step = (height),              \
    .row_group = 1,                    \
    .piece_keys = RAPT_BLOCK_KEYS,     \
    .keeps_places = true,              \
    .enter = enter_amx,                \
    .leave = leave_amx

static const struct rapt_tile_kind tiles_of_bf16 = {AMX_KIND("tiles", INT_MAX, AMX_TILE),
                                                    .panel_bytes = panel_bytes_amx,
                                                    .scores_bytes = scores_bytes_amx,
                                                    .block = block_amx_bf16,
                                                    .pack_stored = pack_queries_amx,
                                                    .packed_bytes = packed_bytes_amx,
                                                    .pack_half = {pack_keys_amx, pack_values_amx},
                                                    .close = unit16_close_bf16};

/* Of a KV head: chains of FMAs keep pace with memory; of shorter keys the unit is faster, as measured. */
enum { CHAINS_ROWS = 2, CHAINS_LEAST_DIM = 3 * RAPT_STEP + 1 };

static const struct rapt_tile_kind few_of_bf16 = {AMX_KIND("few", AMX_TILE, AMX_TILE),
                                                  .streams = true,
                                                  .takes_runs = true,
                                                  .beside_rows = {[RAPT_FORMAT_BF16] = AMX_TILE},
                                                  .beside_unlike = FEW_NEAR_DIMS,
                                                  .beside_rests = true,
                                                  .panel_bytes = panel_bytes_few,
                                                  .scores_bytes = scores_bytes_few,
                                                  .block = block_few_bf16,
                                                  .pack_stored = pack_queries_few,
                                                  .close = unit16_close_bf16};

static const struct rapt_tile_kind tiles_of_parts = {AMX_KIND("tiles", INT_MAX, AMX_TILE),
                                                     .panel_bytes = panel_bytes_split,
                                                     .scores_bytes = scores_bytes_split,
                                                     .block = block_amx_split,
                                                     .pack = pack_queries_split,
                                                     .packed_bytes = packed_bytes_split,
                                                     .pack_half = {pack_keys_split, pack_values_split}};

static void name_after_unit(struct rapt_table *table) {
    table->name = "amx";
    table->isa = RAPT_ISA_AMX;
}

static bool add_tiles(struct rapt_table *table) {
    if (!amx_is_usable())
        return false;
    name_after_unit(table);
    table->kinds[RAPT_WIDE] = tiles_of_bf16;
    table->kinds[RAPT_FEW] = few_of_bf16;
    table->kinds[RAPT_NARROW].most_rows = CHAINS_ROWS;
    table->kinds[RAPT_NARROW].least_dim = CHAINS_LEAST_DIM;
    return true;
}

static bool add_tiles_of_parts(struct rapt_table *table) {
    if (!amx_is_usable())
        return false;
    name_after_unit(table);
    struct rapt_tile_kind tiles = tiles_of_parts;
    tiles.close = table->kinds[RAPT_WIDE].close; /* the lanes of l lie as those of chains */
    table->kinds[RAPT_WIDE] = tiles;
    table->kinds[RAPT_FEW].most_rows = 0;
    table->kinds[RAPT_NARROW].most_rows = 0; /* but weights take its scores */
    return true;
}

const struct rapt_table *rapt_amx_table(const struct rapt_table *chains, int type) {
    static struct unit16_once of_bf16, of_f32;
    return type == RAPT_OF_BF16  ? unit16_once(&of_bf16, chains, add_tiles)
           : type == RAPT_OF_F32 ? unit16_once(&of_f32, chains, add_tiles_of_parts)
                                 : NULL;
}
