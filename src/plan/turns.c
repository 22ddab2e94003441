/* SPDX-License-Identifier: MIT */
#include "plan/turns.h"

#include "cpu.h"
#include "plan/work.h"

enum { EXCLUDES = RAPT_PART_MASK | RAPT_PART_BIAS | RAPT_PART_SELECT /* what may exclude keys of a block */ };

/* Whether a single head reads pages in turns, if its kind does not always do so. Otherwise strands keep memory busy
 * (docs/performance/pages.md). */
static bool turns_beat_strands(const struct rapt_plan_body *plan, int side, int64_t rows) {
    enum { LEAST_ROWS = 3, MOST_BYTES = 511, LEAST_TOKENS = 32, LEAST_F32_ROWS = 7 };
    const int format = plan->format[side];
    const bool is_f32 = format == RAPT_FORMAT_F32, is_half = format == RAPT_FORMAT_F16 || format == RAPT_FORMAT_BF16;
    switch (rapt_cpu_requests()) {
    case RAPT_REQUESTS_FAR_INTO_L2: return !is_f32 || !plan->exceeds_caches || rows >= LEAST_F32_ROWS;
    case RAPT_REQUESTS_FAR_INTO_L1: /* if a turn and the next one fit L1 */
        return !is_f32 && rows >= LEAST_ROWS && rapt_format_row_bytes(format, rapt_dim_of(plan, side)) <= MOST_BYTES;
    case RAPT_REQUESTS_L1_AT_HAND:
        return is_f32 || (is_half && plan->exceeds_caches &&
                          (rows > 1 || rapt_pages_of(&plan->desc, side)->page_tokens >= LEAST_TOKENS));
    default: return false;
    }
}

/* Whether turns, or their halves, each lie within one page. */
static bool has_turns_in_pages(const struct rapt_plan_body *plan, const struct rapt_work *work, int side, int64_t rows,
                               int64_t heads) {
    const struct rapt_tile_kind *kind = &plan->table->kinds[work->kind];
    const int64_t page_tokens = rapt_pages_of(&plan->desc, side)->page_tokens;
    return kind->score_beside && (heads > 1 || kind->beside_single_head || turns_beat_strands(plan, side, rows)) &&
           rapt_takes_runs(plan, kind, side) &&
           page_tokens % kind->turn_keys == 0 && work->sequence.key_position % kind->turn_keys == 0;
}

/* Whether the rows of a side can be read in turns with the other side's: at one stride or, by kinds with their own
 * block, in runs. Values that are whole keys are read faster after them, as measured. */
static bool reads_in_turns(const struct rapt_plan_body *plan, const struct rapt_work *work, int side, bool in_keys,
                           int64_t rows, int64_t heads) {
    const struct rapt_tile_kind *kind = &plan->table->kinds[work->kind];
    const bool is_all = in_keys && plan->desc.value_dim == plan->desc.head_dim;
    const bool reads_on = !work->stages[side] && !in_keys && (!rapt_is_paged(rapt_pages_of(&plan->desc, side)) ||
                                                              has_turns_in_pages(plan, work, side, rows, heads));
    return (kind->takes_runs && !kind->score_beside && !is_all) || reads_on;
}

/* Whether turns take keys and values of these dims. */
static bool has_turns_for(const struct rapt_tile_kind *kind, int64_t key_dim, int64_t value_dim) {
    const int64_t most = rapt_larger(key_dim, value_dim);
    return key_dim == value_dim || (kind->beside_unlike_dim > 0 && most > kind->beside_unlike_dim);
}

/* Whether turns can read the rows of so many heads: most kinds read whole vectors, so these must be whole cache lines,
 * or blocks without gaps. */
static bool lies_in_lines(const struct rapt_plan_body *plan, const struct rapt_work *work, int side, int64_t heads) {
    const int64_t row_bytes = rapt_format_row_bytes(plan->format[side], rapt_dim_of(plan, side));
    const bool is_dense = rapt_tensor_of(plan, side)->token_stride_bytes == heads * row_bytes;
    return plan->table->kinds[work->kind].beside_partial_lines || row_bytes % 64 == 0 ||
           (rapt_format_info(plan->format[side])->elements > 1 && is_dense);
}

/* in_keys: the values are. */
static bool takes_turns(const struct rapt_plan_body *plan, const struct rapt_work *work, bool in_keys, int64_t rows,
                        int64_t heads) {
    const struct rapt_tile_kind *kind = &plan->table->kinds[work->kind];
    bool takes = rows <= kind->rows && rows <= kind->beside_rows[plan->format[RAPT_KEYS]] &&
                 !(plan->mask_parts & EXCLUDES) && plan->format[RAPT_KEYS] == plan->format[RAPT_VALUES] &&
                 has_turns_for(kind, plan->desc.head_dim, plan->desc.value_dim);
    for (int side = 0; takes && side < RAPT_SIDES; side++)
        takes = lies_in_lines(plan, work, side, heads) &&
                reads_in_turns(plan, work, side, side == RAPT_VALUES && in_keys, rows, heads);
    return takes;
}

bool rapt_takes_turns(const struct rapt_plan_body *plan, const struct rapt_work *work, int64_t rows, int64_t heads) {
    return takes_turns(plan, work, rapt_is_in_keys(plan, RAPT_VALUES), rows, heads);
}

bool rapt_plans_turns(const struct rapt_plan_body *plan, const struct rapt_work *work, int64_t rows, int64_t heads) {
    return takes_turns(plan, work, plan->planned_in_keys, rows, heads);
}

/* Whether the rows of a token follow each other, head after head. */
static bool lies_side_by_side(const struct rapt_plan_body *plan, int side, int64_t heads) {
    const rapt_tensor *tensor = rapt_tensor_of(plan, side);
    const int64_t row_bytes = rapt_format_row_bytes(plan->format[side], rapt_dim_of(plan, side));
    return tensor->head_stride_bytes == row_bytes && tensor->token_stride_bytes >= heads * row_bytes;
}

/* Whether so many heads take turns to score and weigh, or of whole blocks: if the rows of each are one tile, keys and
 * values are read in place, and the batch exceeds caches, within which turns only add calls. */
static bool takes_steps_in_turns(const struct rapt_plan_body *plan, const struct rapt_work *work, int64_t heads) {
    const struct rapt_tile_kind *kind = &plan->table->kinds[work->kind];
    const int most_rows = kind->block_turn_rows ? kind->block_turn_rows : kind->rows;
    bool takes = work->task_rows <= most_rows && kind->step_turn_keys % heads == 0 && !(plan->mask_parts & EXCLUDES) &&
                 !plan->planned_in_keys &&
                 (double)plan->desc.batch * rapt_stored_bytes(plan, work) > RAPT_CACHED_BYTES;
    for (int side = 0; takes && side < RAPT_SIDES; side++)
        takes = !work->stages[side] && (kind->block_turn_rows || !rapt_is_paged(rapt_pages_of(&plan->desc, side)));
    return takes;
}

int32_t rapt_heads_in_turns(const struct rapt_plan_body *plan, const struct rapt_work *work) {
    const struct rapt_tile_kind *kind = &plan->table->kinds[work->kind];
    const bool one_block = work->sequence.kv_length <= RAPT_BLOCK_KEYS;
    int32_t heads = rapt_has_heads_in_turns(kind) && !one_block ? RAPT_MOST_HEADS : 1;
    for (; heads > 1; heads--)
        if (plan->desc.kv_heads % heads == 0 &&
            (kind->step_turn_keys || kind->block_turn_rows ? takes_steps_in_turns(plan, work, heads)
                                                           : rapt_plans_turns(plan, work, work->task_rows, heads)) &&
            lies_side_by_side(plan, RAPT_KEYS, heads) && lies_side_by_side(plan, RAPT_VALUES, heads))
            break;
    return heads;
}
