/* SPDX-License-Identifier: MIT
 * Order 2 on the matrix unit of x86. What logits, spans and exclusion do to scores is that of the chains of FMAs; the
 * rest of their functions is of no use here. */
#include "x86/avx512/simd.h"

#define RAPT_TABLE amx

#include <limits.h>

#include "x86/amx/answers.h"
#include "x86/amx/few.h"
#include "x86/amx/pair.h"
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

static const struct rapt_tile_kind tiles_of_bf16 = {.name = "tiles",
                                                    .most_rows = INT_MAX,
                                                    .rows = AMX_TILE,
                                                    .row_step = AMX_TILE,
                                                    .row_group = 1,
                                                    .piece_keys = RAPT_BLOCK_KEYS,
                                                    .keeps_places = true,
                                                    .panel_bytes = panel_bytes_amx,
                                                    .scores_bytes = scores_bytes_amx,
                                                    .block = block_amx_bf16,
                                                    .pack_stored = pack_queries_amx,
                                                    .packed_bytes = packed_bytes_amx,
                                                    .pack_half = {pack_keys_amx, pack_values_amx},
                                                    .close = unit16_close_bf16,
                                                    .enter = enter_amx,
                                                    .leave = leave_amx};

enum { CHAINS_ROWS = 2 }; /* of a KV head: chains of FMAs keep pace with memory */

static const struct rapt_tile_kind few_of_bf16 = {.name = "few",
                                                  .most_rows = TILE_HEIGHT,
                                                  .rows = TILE_HEIGHT,
                                                  .row_step = TILE_HEIGHT,
                                                  .row_group = 1,
                                                  .piece_keys = RAPT_BLOCK_KEYS,
                                                  .streams = true,
                                                  .keeps_places = true,
                                                  .panel_bytes = panel_bytes_few,
                                                  .scores_bytes = scores_bytes_few,
                                                  .block = block_few_bf16,
                                                  .pack_stored = pack_queries_few,
                                                  .close = unit16_close_bf16,
                                                  .enter = enter_amx,
                                                  .leave = leave_amx};

static bool add_tiles(struct rapt_table *table) {
    if (!amx_is_usable())
        return false;
    table->name = "amx";
    table->isa = RAPT_ISA_AMX;
    table->kinds[RAPT_WIDE] = tiles_of_bf16;
    table->kinds[RAPT_FEW] = few_of_bf16;
    table->kinds[RAPT_NARROW].most_rows = CHAINS_ROWS;
    return true;
}

const struct rapt_table *rapt_amx_table(const struct rapt_table *chains) {
    static struct unit16_once once;
    return unit16_once(&once, chains, add_tiles);
}
