/* SPDX-License-Identifier: MIT */
#include "attend/task.h"

#include "attend/widen.h"

/* The keys of some splits. */
static struct rapt_span keys_of_splits(const struct rapt_task *task, int64_t split, int64_t count) {
    const int64_t share = task->plan->split_chunks, first = task->work.first_chunk + split * share;
    return (struct rapt_span){first * RAPT_CHUNK_KEYS, (first + count * share) * RAPT_CHUNK_KEYS};
}

/* Heaviest first: with causal attention the last queries see the most keys. */
void rapt_task_find(struct rapt_task *task, const struct rapt_run *run, int64_t index, int64_t count) {
    const struct rapt_plan_body *plan = run->plan;
    task->run = run;
    task->plan = plan;
    task->table = plan->table;
    task->work = rapt_work_of_task(plan, run->works, RAPT_PHASE_ATTEND, index);
    task->kind = &plan->table->kinds[task->work.kind];
    const struct rapt_work *work = &task->work;
    index -= work->first_task;
    const int64_t in_turns = index % work->heads;
    index /= work->heads;
    task->split = index % work->splits;
    index /= work->splits;
    task->first_row = (work->row_blocks - 1 - index % work->row_blocks) * work->task_rows;
    task->kv_head = index / work->row_blocks * work->heads + in_turns;
    const int64_t left = work->sequence.query_length * plan->group - task->first_row;
    task->rows = (int)(left < work->task_rows ? left : work->task_rows);
    RAPT_ASSUME(task->rows > 0 && task->kv_head < plan->desc.kv_heads && count >= 1 &&
                task->split + count <= work->splits);
    task->visible =
        rapt_visible_to(&plan->desc, &work->sequence, rapt_position(task, 0), rapt_position(task, task->rows - 1));
    if (work->splits > 1)
        task->visible = rapt_intersect(task->visible, keys_of_splits(task, task->split, count));
}

static float slope_of(const struct rapt_task *task, int64_t head) {
    const struct rapt_plan_body *plan = task->plan;
    if (plan->desc.alibi_slopes)
        return plan->desc.alibi_slopes[head];
    int64_t power = 1;
    while (power * 2 <= plan->desc.query_heads)
        power *= 2;
    const float exponent = head < power ? -8.0f * (float)(head + 1) / (float)power
                                        : -4.0f * (float)(2 * (head - power) + 1) / (float)power;
    float slope;
    plan->table->exponentials(&exponent, &slope, 1, 0);
    return slope;
}

static float *floats_at(char *slot, size_t offset) { return (float *)(void *)(slot + offset); }

void rapt_task_find_merge(struct rapt_task *task, const struct rapt_run *run, int64_t index) {
    const struct rapt_work work = rapt_work_of_task(run->plan, run->works, RAPT_PHASE_MERGE, index);
    rapt_task_find(task, run, rapt_work_first_split(&work, index - work.first_merge), 1);
}

void rapt_task_open(struct rapt_task *task, char *slot, int number) {
    const struct rapt_plan_body *plan = task->plan;
    const struct rapt_slot_layout *at = number > 0 ? &plan->further : &plan->slot;
    if (number > 0)
        slot += plan->slot.further + (size_t)(number - 1) * plan->further.slot_bytes;
    RAPT_ASSUME(task->rows <= at->rows);
    task->panel = floats_at(slot, at->panel);
    task->scores = floats_at(slot, at->scores);
    task->bias = floats_at(slot, at->bias);
    task->alpha = floats_at(slot, at->alpha);
    task->slopes = floats_at(slot, at->slopes);
    task->final_m = floats_at(slot, at->final_m);
    task->inverse = floats_at(slot, at->inverse);
    task->running = rapt_state_at(slot + at->running, at->rows, plan->o_stride);
    task->chunk = rapt_state_at(slot + at->chunk, at->rows, plan->o_stride);
    for (int side = 0; side < RAPT_SIDES; side++)
        task->staged[side] = floats_at(slot, at->staged[side]);
    for (int rows = 0; rows < RAPT_KEY_ROWS; rows++)
        task->rows_of_keys[rows] = slot + at->rows_of_keys[rows];
    task->gathered = floats_at(slot, at->gathered);
    for (int row = 0; (plan->mask_parts & RAPT_PART_ALIBI) && row < task->rows; row++)
        task->slopes[row] = -(slope_of(task, rapt_task_head(task, row)) * RAPT_LOG2E);
}

void rapt_task_rows(const struct rapt_task *task, const rapt_tensor *tensor, int first, int count, char **rows) {
    int64_t group = task->plan->group, row = task->first_row + first;
    int64_t query = task->work.sequence.query_first + row / group, head = row % group;
    for (int i = 0; i < count; i++) {
        rows[i] = (char *)(uintptr_t)rapt_row(tensor, task->work.batch, task->kv_head * group + head, query);
        if (++head == group)
            head = 0, query++;
    }
}

void rapt_task_begin(struct rapt_task *task) {
    const rapt_attention_desc *desc = &task->plan->desc;
    char *rows[RAPT_MAX_TILE_ROWS];
    if (!desc->initial_state.data) {
        rapt_state_clear(task->running, task->rows);
        return;
    }
    for (int first = 0; first < task->rows; first += RAPT_MAX_TILE_ROWS) {
        const int left = task->rows - first, count = left < RAPT_MAX_TILE_ROWS ? left : RAPT_MAX_TILE_ROWS;
        rapt_task_rows(task, &desc->initial_state, first, count, rows);
        task->table->load_states(rapt_state_from(task->running, first), rows, count, (int)desc->value_dim);
    }
}

void rapt_task_pack(const struct rapt_task *task, const struct rapt_tile_kind *kind, float *panel, int first,
                    int count) {
    const struct rapt_plan_body *plan = task->plan;
    const int head_dim = (int)plan->desc.head_dim;
    char *stored[RAPT_MAX_TILE_ROWS];
    const float *rows[RAPT_MAX_TILE_ROWS];
    RAPT_ASSUME(plan->query_format == RAPT_FORMAT_F32 ||
                count * (int64_t)head_dim * (int64_t)sizeof(float) <= plan->totals.scores_bytes);
    rapt_task_rows(task, &plan->desc.query, first, count, stored);
    if (kind->pack_stored) {
        kind->pack_stored(panel, (const char *const *)stored, count, head_dim);
        return;
    }
    const struct rapt_widening widening = {.table = task->table,
                                           .format = plan->query_format,
                                           .rows = count,
                                           .end = head_dim,
                                           .room = task->scores,
                                           .room_stride = head_dim};
    rapt_widen(&widening, stored, rows);
    kind->pack(panel, rows, count, head_dim);
}

struct rapt_state rapt_state_of_chunk(const struct rapt_task *task, int64_t chunk) {
    const struct rapt_work *work = &task->work;
    const int64_t o_stride = task->plan->o_stride, bytes = rapt_state_bytes(work->task_rows, o_stride);
    RAPT_ASSUME(work->splits > 1 && chunk >= 0 && chunk < work->chunks);
    return rapt_state_at(task->run->states + work->first_state + (task->kv_head * work->chunks + chunk) * bytes,
                         work->task_rows, o_stride);
}
