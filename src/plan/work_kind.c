/* SPDX-License-Identifier: MIT */
#include "plan/work_kind.h"

#include "plan/listed.h"
#include "plan/turns.h"

enum {
    TASK_ROWS = 192,          /* a multiple of every tile height; K and V are read once per task */
    TASK_OUTPUTS = 192 * 256, /* rows x dims that keep two states of o in L2 */
    PACKED_ROWS = 1024,       /* packing keys and values costs about as much as 30 rows do */
    PACKED_OUTPUTS = 1024 * 128,
    FEW_RUN = 32,             /* run of keys from which on copies do not pay: shorter ones waste vectors, */
    WIDE_RUN = 128            /* or load and store sums too often */
};

/* A tile of few rows transposes keys and packs queries for them, unless it reads keys in place: for less than a block
 * of keys, a wide one is faster. */
static int32_t kind_of(const struct rapt_plan_body *plan, int64_t rows, int64_t keys) {
    const struct rapt_tile_kind *kinds = plan->table->kinds;
    int32_t kind = 0;
    while (kind < RAPT_KINDS - 1 && (rows > kinds[kind].most_rows || plan->desc.head_dim < kinds[kind].least_dim))
        kind++;
    return keys < kinds[kind].least_keys ? RAPT_WIDE : kind;
}

/* A wide tile is faster, too, if it is nearly full, unless heads take turns, or keys and values would be packed for it
 * alone. */
static bool is_faster_wide(const struct rapt_plan_body *plan, const struct rapt_work *work, int64_t rows) {
    const struct rapt_tile_kind *wide = &plan->table->kinds[RAPT_WIDE];
    return work->kind == RAPT_FEW && !wide->packed_bytes && rows <= wide->rows && 8 * rows > 7 * (int64_t)wide->rows &&
           rapt_heads_in_turns(plan, work) == 1;
}

/* Slots that read stored rows take one scale per row, and no zero points. */
static bool scales_rows(const rapt_tensor *tensor, int64_t dim) {
    return tensor->zero_point_dtype == 0 && (tensor->scale_group == 0 || tensor->scale_group >= dim);
}

/* Each task makes its own copies, so if rows could be read in place, copies must serve many rows. */
static bool stages(const struct rapt_plan_body *plan, const struct rapt_work *work, int64_t rows, int side) {
    const struct rapt_tile_kind *kind = &plan->table->kinds[work->kind];
    const int64_t run = work->kind == RAPT_WIDE ? WIDE_RUN : FEW_RUN;
    const rapt_page_table *table = rapt_pages_of(&plan->desc, side);
    if (kind->keeps_places)
        return kind->packed_bytes != NULL;
    if (rapt_is_paged(table) && !rapt_takes_runs(plan, kind, side) && table->page_tokens < run)
        return true;
    if (!(kind->formats >> plan->format[side] & 1) || !scales_rows(rapt_tensor_of(plan, side), rapt_dim_of(plan, side)))
        return true;
    return plan->collides[side] && kind->copied_rows && rows >= kind->copied_rows;
}

/* Keys and values are read once per task, and two states of o should fit L2. */
static int64_t most_task_rows(const struct rapt_plan_body *plan, const struct rapt_work *work) {
    const struct rapt_tile_kind *kind = &plan->table->kinds[work->kind];
    const bool is_packed = kind->packed_bytes, copies = work->stages[RAPT_KEYS] || work->stages[RAPT_VALUES];
    const int64_t by_reads = is_packed ? PACKED_ROWS : copies ? 2 * TASK_ROWS : TASK_ROWS;
    const int64_t most = rapt_smaller(by_reads, RAPT_MAX_TILES * (int64_t)kind->rows);
    const int64_t dim = rapt_larger(plan->desc.head_dim, plan->desc.value_dim);
    const int64_t by_outputs = (is_packed ? PACKED_OUTPUTS : TASK_OUTPUTS) / dim;
    return by_outputs < most ? rapt_larger(by_outputs / kind->rows, 1) * kind->rows : most;
}

void rapt_work_cut_rows(const struct rapt_plan_body *plan, struct rapt_work *work) {
    const int64_t rows = plan->group * work->sequence.query_length;
    for (int side = 0; side < RAPT_SIDES; side++)
        work->stages[side] = stages(plan, work, rows, side);
    int64_t most = most_task_rows(plan, work);
    if (plan->desc.key_blocks.query_tokens)
        most = rapt_rows_of_lists(plan, rows, most, plan->table->kinds[work->kind].rows);
    work->task_rows = (int32_t)(most < rows ? most : rapt_larger(rows, 1));
    work->row_blocks = rapt_quotient_up(rows, work->task_rows);
}

/* Whether narrow tiles take more rows than usual, since these read in turns. */
static bool fills_narrow(const struct rapt_plan_body *plan, struct rapt_work *work, int64_t rows) {
    const struct rapt_tile_kind *narrow = &plan->table->kinds[RAPT_NARROW];
    if (rows <= narrow->most_rows || rows > narrow->turn_rows || work->sequence.kv_length < RAPT_BLOCK_KEYS)
        return false;
    work->kind = RAPT_NARROW;
    rapt_work_cut_rows(plan, work);
    return rapt_plans_turns(plan, work, rows, 1);
}

void rapt_choose_kind(const struct rapt_plan_body *plan, struct rapt_work *work) {
    const int64_t rows = plan->group * work->sequence.query_length;
    if (fills_narrow(plan, work, rows))
        return;
    work->kind = kind_of(plan, rows, work->sequence.kv_length);
    rapt_work_cut_rows(plan, work);
    if (is_faster_wide(plan, work, rows)) {
        work->kind = RAPT_WIDE;
        rapt_work_cut_rows(plan, work);
    }
}
