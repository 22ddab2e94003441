/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit: the tile kinds for the number type of a kernels file, and the table that has them. */
#ifndef RAPT_X86_AMX_KINDS_H
#define RAPT_X86_AMX_KINDS_H

#include <limits.h>

#include "x86/amx/answers.h"
#include "x86/amx/few.h"
#include "x86/amx/pair.h"
#include "x86/unit16/once.h"

/* The previous configuration, where alpha of rows beyond those of a tile would be. */
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

static const struct rapt_tile_kind amx_tiles = {AMX_KIND("tiles", INT_MAX, AMX_TILE),
                                                .panel_bytes = panel_bytes_amx,
                                                .scores_bytes = scores_bytes_amx,
                                                .block = block_amx,
                                                .pack_stored = pack_queries_amx,
                                                .packed_bytes = packed_bytes_amx,
                                                .pack_half = {pack_keys_amx, pack_values_amx},
                                                .close = unit16_close};

/* Of a KV head: chains of FMAs keep pace with memory; of shorter keys the unit is faster, as measured. */
enum { CHAINS_ROWS = 2, CHAINS_LEAST_DIM = 3 * RAPT_STEP + 1 };

static const struct rapt_tile_kind amx_few = {AMX_KIND("few", AMX_TILE, AMX_TILE),
                                              .streams = true,
                                              .takes_runs = true,
                                              .block_turn_rows = TILE_HEIGHT,
                                              .beside_rows = {[UNIT16_FORMAT] = AMX_TILE},
                                              .beside_unlike_dim = FEW_NEAR_DIMS,
                                              .beside_partial_lines = true,
                                              .panel_bytes = panel_bytes_amx,
                                              .scores_bytes = scores_bytes_few,
                                              .block = block_few,
                                              .pack_stored = pack_queries_few,
                                              .close = unit16_close};

static void name_after_unit(struct rapt_table *table) {
    table->name = "amx";
    table->isa = RAPT_ISA_AMX;
}

static bool add_tiles(struct rapt_table *table) {
    if (!amx_is_usable())
        return false;
    name_after_unit(table);
    table->kinds[RAPT_WIDE] = amx_tiles;
    table->kinds[RAPT_FEW] = amx_few;
    table->kinds[RAPT_NARROW].most_rows = CHAINS_ROWS;
    table->kinds[RAPT_NARROW].least_dim = CHAINS_LEAST_DIM;
    return true;
}

#endif
