/* SPDX-License-Identifier: MIT
 * shapes -> constants, works, scratch: a pure function that never asks how many
 * threads there are. Its choices affect speed only; none changes a bit. */
#include "plan/plan.h"

#include "checked.h"
#include "numerics.h"
#include "pages.h"
#include "plan/turns.h"
#include "plan/view.h"
#include "plan/work.h"

enum {
    COLLIDING_MULTIPLE = 1024, /* bytes between tokens */
    SMALL_WORK = 1 << 20       /* multiply-adds below which waking a thread costs more */
};

static void set_constants(struct rapt_plan_body *plan) {
    const rapt_attention_desc *desc = &plan->desc;
    plan->softcap_log2e = desc->softcap * RAPT_LOG2E;
    plan->score_factor = desc->softcap != 0 ? desc->scale / desc->softcap : desc->scale * RAPT_LOG2E;
    plan->group = desc->query_heads / desc->kv_heads;
    plan->o_stride = rapt_round_up(plan->desc.value_dim, RAPT_VECTOR_BYTES / (int64_t)sizeof(float));
    plan->works_differ =
        desc->query_lengths.data || desc->kv_lengths.data || desc->query_position.data || desc->key_position.data ||
        desc->query_offsets.data || desc->kv_offsets.data ||
        (desc->kv_length > 0 && !(rapt_shares_pages(&desc->key_pages) && rapt_shares_pages(&desc->value_pages)));
}

static bool is_present(const rapt_tensor *tensor) { return tensor->dtype != RAPT_NO_DTYPE; }

static unsigned mask_parts_of(const rapt_attention_desc *desc) {
    const bool alibi = desc->alibi_slopes || (desc->features & RAPT_ALIBI_STANDARD);
    return (is_present(&desc->bias) ? RAPT_PART_BIAS : 0u) | (is_present(&desc->mask) ? RAPT_PART_MASK : 0u) |
           (desc->features & RAPT_MASK_FILL ? RAPT_PART_FILL : 0u) | (alibi ? RAPT_PART_ALIBI : 0u) |
           (desc->softcap * RAPT_LOG2E != 0 ? RAPT_PART_SOFTCAP : 0u) |
           (is_present(&desc->keep_mask) ? RAPT_PART_KEEP : 0u) |
           (desc->key_blocks.query_tokens || desc->tree_tokens ? RAPT_PART_SELECT : 0u);
}

/* Whether rows fall into so few cache sets that they evict each other. Without gaps they do not. */
static bool rows_collide(int64_t stride_bytes, int64_t row_bytes) {
    return stride_bytes != row_bytes && stride_bytes % COLLIDING_MULTIPLE == 0 &&
           stride_bytes / COLLIDING_MULTIPLE >= 2;
}

/* Without keys or queries a tensor may be absent. */
static int32_t format_of(const rapt_tensor *tensor) {
    const int format = rapt_format_of(tensor->dtype);
    return format == RAPT_FORMAT_COUNT ? RAPT_FORMAT_F32 : format;
}

static void set_formats(struct rapt_plan_body *plan) {
    plan->query_format = format_of(&plan->desc.query);
    plan->bias_format = format_of(&plan->desc.bias);
    plan->out_format = format_of(&plan->desc.out);
    for (int side = 0; side < RAPT_SIDES; side++) {
        const rapt_tensor *tensor = rapt_tensor_of(plan, side);
        plan->format[side] = format_of(tensor);
        const rapt_page_table *table = rapt_pages_of(&plan->desc, side);
        int64_t page_bytes, page_scales;
        plan->joins[side] = rapt_is_paged(table) &&
                            rapt_mul_fits(table->page_tokens, tensor->token_stride_bytes, &page_bytes) &&
                            page_bytes == tensor->page_stride_bytes &&
                            rapt_mul_fits(table->page_tokens, tensor->scale_token_stride_bytes, &page_scales) &&
                            page_scales == tensor->scale_batch_stride_bytes;
        plan->collides[side] = rows_collide(tensor->token_stride_bytes,
                                            rapt_format_row_bytes(plan->format[side], rapt_dim_of(plan, side)));
    }
}

static size_t reserve(size_t *end, int64_t bytes) {
    const size_t offset = *end;
    *end += (size_t)rapt_round_up(bytes, RAPT_VECTOR_BYTES);
    return offset;
}

static int64_t staged_bytes(const struct rapt_plan_body *plan, const struct rapt_totals *totals, int side) {
    return RAPT_STAGING_BUFFERS * totals->staged_keys[side] * rapt_dim_of(plan, side) * (int64_t)sizeof(float);
}

/* Room for the keys that masks leave. */
static void reserve_selected(const struct rapt_plan_body *plan, struct rapt_slot_layout *layout, size_t *end) {
    static const unsigned parts[RAPT_KEY_ROWS] = {RAPT_PART_SELECT, RAPT_PART_MASK, RAPT_PART_KEEP, RAPT_PART_BIAS};
    const int64_t keys = RAPT_MAX_TILE_ROWS * RAPT_BLOCK_KEYS;
    const bool may_select = plan->mask_parts & (RAPT_PART_SELECT | RAPT_PART_MASK | RAPT_PART_BIAS);
    const int64_t dim = rapt_larger(plan->desc.head_dim, plan->desc.value_dim);
    for (int rows = 0; rows < RAPT_KEY_ROWS; rows++) {
        const int64_t bytes = rows == RAPT_BIAS_ROWS ? keys * (int64_t)sizeof(float) : keys;
        layout->rows_of_keys[rows] = reserve(end, may_select && (plan->mask_parts & parts[rows]) ? bytes : 0);
    }
    layout->gathered = reserve(end, may_select ? RAPT_GATHERED_KEYS * dim * (int64_t)sizeof(float) : 0);
}

/* Scratch of every KV head of a task. */
static size_t lay_out_head(const struct rapt_plan_body *plan, const struct rapt_totals *totals,
                           struct rapt_slot_layout *layout) {
    const int64_t rows = totals->rows, floats = rows * (int64_t)sizeof(float);
    const int64_t state_bytes = rapt_state_bytes(rows, plan->o_stride);
    size_t end = 0;
    layout->rows = rows;
    layout->panel = reserve(&end, totals->panel_bytes);
    layout->scores = reserve(&end, totals->scores_bytes);
    layout->bias = reserve(&end, totals->bias_rows * RAPT_BLOCK_KEYS * (int64_t)sizeof(float));
    layout->alpha = reserve(&end, RAPT_MAX_TILE_ROWS * (int64_t)sizeof(float));
    layout->slopes = reserve(&end, floats);
    layout->final_m = reserve(&end, floats);
    layout->inverse = reserve(&end, floats);
    layout->running = reserve(&end, state_bytes);
    layout->chunk = reserve(&end, state_bytes);
    return end;
}

/* For narrow tiles, or tiles of few rows, of at most so many; without masks and staging. Queries that must be widened
 * lie where the scores will. */
static void lay_out_further(const struct rapt_plan_body *plan, int64_t rows, struct rapt_slot_layout *layout) {
    const int head_dim = (int)plan->desc.head_dim;
    struct rapt_totals totals = {.rows = rows};
    for (int32_t number = 0; number < RAPT_KINDS; number++) {
        const struct rapt_tile_kind *kind = &plan->table->kinds[number];
        const int most = kind->step_turn_keys ? (int)rows : kind->rows;
        if (rows == 0 || !rapt_has_heads_in_turns(kind))
            continue;
        const int64_t widened = most * head_dim * (int64_t)sizeof(float);
        totals.rows = rapt_larger(totals.rows, most);
        totals.panel_bytes = rapt_larger(totals.panel_bytes, (int64_t)kind->panel_bytes(most, head_dim));
        totals.scores_bytes = rapt_larger(totals.scores_bytes, (int64_t)kind->scores_bytes(most, head_dim));
        totals.scores_bytes = rapt_larger(totals.scores_bytes, widened);
    }
    *layout = (struct rapt_slot_layout){0};
    layout->slot_bytes = lay_out_head(plan, &totals, layout);
}

void rapt_lay_out_slot(const struct rapt_plan_body *plan, const struct rapt_totals *totals,
                       struct rapt_slot_layout *layout, struct rapt_slot_layout *further) {
    size_t end = lay_out_head(plan, totals, layout);
    layout->staged[RAPT_KEYS] = reserve(&end, staged_bytes(plan, totals, RAPT_KEYS));
    layout->staged[RAPT_VALUES] = reserve(&end, staged_bytes(plan, totals, RAPT_VALUES));
    reserve_selected(plan, layout, &end);
    lay_out_further(plan, totals->further_rows, further);
    layout->further = reserve(&end, (totals->heads - 1) * (int64_t)further->slot_bytes);
    layout->slot_bytes = end;
}

bool rapt_plan_make(struct rapt_plan_body *plan, const struct rapt_table *table) {
    plan->numerics = rapt_numerics_of(&plan->desc, table);
    plan->table = plan->numerics == RAPT_NUMERICS_ORDER_1 ? table : rapt_unit_table(&plan->desc, table);
    set_constants(plan);
    plan->mask_parts = mask_parts_of(&plan->desc);
    set_formats(plan);
    rapt_find_view(plan);
    plan->planned_in_keys = rapt_is_in_keys(plan, RAPT_VALUES);
    const bool is_legal = rapt_work_cut_all(plan);
    rapt_lay_out_slot(plan, &plan->totals, &plan->slot, &plan->further);
    plan->is_small = plan->totals.multiplications < SMALL_WORK;
    plan->exceeds_caches = plan->totals.stored_bytes > RAPT_CACHED_BYTES;
    return is_legal;
}
