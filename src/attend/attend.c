/* SPDX-License-Identifier: MIT
 * Blocks and chunks begin at absolute multiples of their sizes, so their bits do not depend on how the caller cuts the
 * work. */
#include "attend/attend.h"

#include "attend/finish.h"
#include "attend/prefetch.h"
#include "attend/select.h"
#include "attend/weights.h"
#include "plan/turns.h"

/* As few tiles as possible, of equal height up to one step: low tiles are slow. */
static void open_tiles(struct rapt_loop *loop, struct rapt_task *task) {
    const struct rapt_plan_body *plan = task->plan;
    const struct rapt_tile_kind *kind = task->kind;
    const int step = kind->row_step, steps = (int)rapt_quotient_up(task->rows, step);
    const int count = (int)rapt_quotient_up(task->rows, kind->rows);
    const size_t panel_bytes = kind->panel_bytes(kind->rows, (int)plan->desc.head_dim);
    RAPT_ASSUME(loop->tile_count + count <= RAPT_MAX_TILES);
    for (int first = 0, number = 0, rows; first < task->rows; first += rows, number++) {
        struct rapt_tile *tile = &loop->tiles[loop->tile_count++];
        rows = (steps / count + (number < steps % count)) * step;
        tile->task = task;
        tile->first = first;
        tile->rows = task->rows - first < rows ? task->rows - first : rows;
        tile->flags = 0;
        tile->scored = (struct rapt_scored){.base = -1};
        tile->visible = rapt_visible_to(&plan->desc, &task->work.sequence, rapt_position(task, first),
                                        rapt_position(task, first + tile->rows - 1));
        tile->visible = rapt_intersect(tile->visible, task->visible);
        tile->panel = (float *)(void *)((char *)task->panel + (size_t)number * panel_bytes);
    }
}

/* Just before the first use, which then finds the panel in L1. */
static void pack(struct rapt_tile *tile) {
    rapt_task_pack(tile->task, tile->task->kind, tile->panel, tile->first, tile->rows);
    tile->flags |= RAPT_TILE_PACKED;
}

/* Places the scores of a block, and those of the next one. */
static void set_scores(const struct rapt_loop *loop, struct rapt_tile *tile, struct rapt_block *block) {
    struct rapt_scored *scored = &tile->scored;
    const int64_t second = (int64_t)RAPT_BLOCK_KEYS * tile->rows;
    block->is_scored = !block->careful && scored->base == block->base;
    scored->here ^= block->is_scored;
    block->scores = tile->task->scores + scored->here * second;
    if (block->careful)
        scored->base = -1; /* its scores may lie where those of the next block were */
    if (block->careful || !loop->takes_turns)
        return;
    scored->base = rapt_next_block(tile->visible, block->base + RAPT_BLOCK_KEYS);
    const struct rapt_span keys = rapt_block_of(tile->visible, scored->base);
    if (scored->base >= 0)
        block->next = (struct rapt_next_scores){.scores = tile->task->scores + !scored->here * second,
                                                .base = scored->base,
                                                .key_begin = (int)(keys.begin - scored->base),
                                                .key_end = (int)(keys.end - scored->base)};
}

/* If masks left few keys of a block, they are expected to leave few of the next one: only these are prefetched. */
static void look_ahead(struct rapt_loop *loop, const struct rapt_tile *tile, int64_t base) {
    struct rapt_expected *expected = &loop->source.expected;
    expected->count = 0;
    if (!(tile->flags & RAPT_TILE_SPARSE) || !loop->task->kind->streams)
        return;
    expected->base = rapt_next_selected(loop->task, tile->visible, base + RAPT_BLOCK_KEYS);
    if (expected->base >= 0)
        expected->count = rapt_visit_ahead(loop->task, tile->first, tile->rows, tile->visible, expected->base,
                                           expected->place);
}

/* A block for a tile, and the mask that it points to. */
struct step {
    struct rapt_block block;
    struct rapt_tile_mask mask;
};

/* False if no row of the tile sees the block. errands: gets what it prefetches; NULL = nothing. */
static bool open_block(struct rapt_loop *loop, struct rapt_tile *tile, int64_t base, bool careful, struct step *step,
                       struct rapt_errands *errands) {
    struct rapt_task *task = tile->task;
    struct rapt_tile_mask *mask = &step->mask;
    struct rapt_span keys;
    look_ahead(loop, tile, base);
    const enum rapt_seen seen = rapt_visit(task, tile->first, tile->rows, tile->visible, base, &keys, mask);
    if (seen == RAPT_SEES_NOTHING)
        return false;
    step->block = (struct rapt_block){.task = task,
                                      .source = &loop->source,
                                      .mask = mask,
                                      .panel = tile->panel,
                                      .state = tile->state,
                                      .rows = tile->rows,
                                      .base = base,
                                      .key_begin = rapt_first_number(mask, base, keys),
                                      .key_end = rapt_end_number(mask, base, keys),
                                      .seen = seen,
                                      .fresh = !(tile->flags & RAPT_TILE_TOUCHED),
                                      .careful = careful,
                                      .next.scores = NULL,
                                      .of_score = NULL,
                                      .of_weigh = NULL};
    set_scores(loop, tile, &step->block);
    if (!(tile->flags & RAPT_TILE_PACKED))
        pack(tile);
    tile->flags |= RAPT_TILE_TOUCHED;
    tile->flags = mask->selected ? tile->flags | RAPT_TILE_SPARSE : tile->flags & ~(unsigned)RAPT_TILE_SPARSE;
    if (seen == RAPT_SEES_SOME)
        tile->flags |= RAPT_TILE_DOUBTFUL;
    if (errands)
        rapt_prefetch_tile(loop, tile, base, errands, &step->block);
    return true;
}

/* Not inlined, nor is attend_heads: their stack frames should not add up. */
__attribute__((noinline)) static void attend_block(struct rapt_loop *loop, struct rapt_tile *tile, int64_t base,
                                                   bool careful) {
    struct step step;
    struct rapt_errands errands;
    if (open_block(loop, tile, base, careful, &step, careful ? NULL : &errands))
        tile->task->kind->block(&step.block);
}

/* One tile per head; their slots prefetch what comes next in address order. */
__attribute__((noinline)) static void attend_heads(struct rapt_loop *loop, int64_t base) {
    struct step steps[RAPT_MOST_HEADS];
    const struct rapt_block *blocks[RAPT_MOST_HEADS];
    int count = 0;
    RAPT_ASSUME(loop->tile_count == loop->heads && loop->heads <= RAPT_MOST_HEADS);
    for (int head = 0; head < loop->heads; head++)
        if (open_block(loop, &loop->tiles[head], base, false, &steps[head], NULL))
            blocks[count++] = &steps[head].block;
    rapt_blocks_in_turns(blocks, count);
}

/* Repeats a chunk, without values of excluded pairs. */
static void attend_again(struct rapt_loop *loop, struct rapt_tile *tile, int64_t chunk) {
    const int64_t end = (chunk + 1) * RAPT_CHUNK_KEYS;
    tile->flags &= ~(unsigned)RAPT_TILE_TOUCHED;
    rapt_state_clear(tile->state, tile->rows);
    for (int64_t block = chunk * RAPT_CHUNK_KEYS; block < end; block += RAPT_BLOCK_KEYS)
        attend_block(loop, tile, block, true);
}

/* Right after its last block of the chunk, while the state is in L1. */
static void close_chunk(struct rapt_loop *loop, struct rapt_tile *tile, int64_t chunk) {
    struct rapt_task *task = tile->task;
    const struct rapt_plan_body *plan = task->plan;
    const int value_dim = (int)plan->desc.value_dim;
    /* A weight of 0 times an excluded value that is NaN or infinite is NaN, and o stays NaN. */
    if ((tile->flags & RAPT_TILE_DOUBTFUL) &&
        !task->kind->packed_bytes &&
        !task->table->all_finite((const char *)tile->state.o, plan->o_stride * 4, tile->rows, value_dim))
        attend_again(loop, tile, chunk);
    if (task->kind->close && (tile->flags & RAPT_TILE_TOUCHED))
        task->kind->close(task, tile->panel, tile->state, tile->rows);
    const bool folds = (tile->flags & RAPT_TILE_TOUCHED) && (tile->flags & RAPT_TILE_STARTED);
    if (folds)
        task->table->merge(rapt_state_from(task->running, tile->first), tile->state, tile->rows, value_dim);
    if (tile->flags & RAPT_TILE_TOUCHED)
        tile->flags |= RAPT_TILE_STARTED;
    if (task->work.splits == 1 && (chunk + 1) * RAPT_CHUNK_KEYS >= tile->visible.end) {
        rapt_finish(task, task->running, tile->first, tile->rows);
        tile->flags |= RAPT_TILE_FINISHED;
    }
}

static void open_chunk(struct rapt_loop *loop) {
    for (struct rapt_tile *tile = loop->tiles; tile < loop->tiles + loop->tile_count; tile++) {
        const struct rapt_task *task = tile->task;
        tile->state = rapt_state_from(tile->flags & RAPT_TILE_STARTED ? task->chunk : task->running, tile->first);
        tile->flags &= ~(unsigned)(RAPT_TILE_TOUCHED | RAPT_TILE_DOUBTFUL);
        rapt_state_clear(tile->state, tile->rows);
    }
}

/* block: the first one, perhaps of a later chunk. Returns the first one of a later chunk; -1 = none. */
static int64_t attend_chunk(struct rapt_loop *loop, int64_t chunk, int64_t block) {
    const struct rapt_span visible = loop->task->visible;
    const int64_t end = (chunk + 1) * RAPT_CHUNK_KEYS;
    open_chunk(loop);
    for (int64_t next; block >= 0 && block < end; block = next) {
        next = rapt_next_selected(loop->task, visible, block + RAPT_BLOCK_KEYS);
        rapt_prefetch_block(loop, block);
        if (loop->heads > 1)
            attend_heads(loop, block);
        for (int number = 0; number < loop->tile_count; number++) {
            struct rapt_tile *tile = &loop->tiles[number];
            const int64_t last = tile->visible.end < end ? tile->visible.end : end;
            if (loop->heads == 1)
                attend_block(loop, tile, block, false);
            if (block < last && (next < 0 || next >= last))
                close_chunk(loop, tile, chunk);
        }
    }
    return block;
}

static void begin_tasks(struct rapt_loop *loop) {
    for (int head = 0; head < loop->heads; head++)
        rapt_task_begin(&loop->task[head]);
}

/* Sets where the running state lies and what it begins with. Only the first split may fold its chunks (numerics.md,
 * step 7): later ones keep the state of each chunk for the merge phase. */
static void open_running(struct rapt_loop *loop, int64_t chunk, bool first) {
    struct rapt_task *task = loop->task;
    const struct rapt_plan_body *plan = task->plan;
    const bool is_later = task->work.splits > 1 && chunk - task->work.first_chunk >= plan->split_chunks;
    if (!first && !is_later)
        return;
    for (int head = 0; task->work.splits > 1 && head < loop->heads; head++)
        task[head].running = rapt_state_of_chunk(&task[head], chunk - task->work.first_chunk);
    for (int number = 0; number < loop->tile_count; number++)
        loop->tiles[number].flags &= ~(unsigned)RAPT_TILE_STARTED;
    if (!plan->desc.initial_state.data || is_later)
        return;
    begin_tasks(loop);
    for (int number = 0; number < loop->tile_count; number++)
        loop->tiles[number].flags |= RAPT_TILE_STARTED;
}

static void attend_chunks(struct rapt_loop *loop) {
    struct rapt_task *task = loop->task;
    const int64_t begin = task->visible.begin / RAPT_CHUNK_KEYS;
    const int64_t end = rapt_quotient_up(task->visible.end, RAPT_CHUNK_KEYS);
    int64_t block = rapt_next_selected(task, task->visible, begin * RAPT_CHUNK_KEYS), next;
    if (begin >= end)
        begin_tasks(loop); /* they see no keys */
    for (int64_t chunk = begin; chunk < end; chunk = next) {
        open_running(loop, chunk, chunk == begin);
        block = attend_chunk(loop, chunk, block);
        if (task->work.splits > 1)
            next = chunk + 1; /* each chunk has a state, also one without blocks */
        else
            next = block < 0 ? end : block / RAPT_CHUNK_KEYS;
    }
}

/* One task, or the same splits of several heads. */
static int open_tasks(struct rapt_task *tasks, const struct rapt_run *run, char *slot, int64_t index, int64_t count) {
    const struct rapt_work work = rapt_work_of_task(run->plan, run->works, RAPT_PHASE_ATTEND, index);
    const int heads = count > 1 ? work.heads : 1;
    RAPT_ASSUME(count % heads == 0);
    for (int head = 0; head < heads; head++) {
        rapt_task_find(&tasks[head], run, index + head, count / heads);
        rapt_task_open(&tasks[head], slot, head);
    }
    return heads;
}

static void finish_tasks(struct rapt_loop *loop) {
    for (const struct rapt_tile *tile = loop->tiles; tile < loop->tiles + loop->tile_count; tile++)
        if (!(tile->flags & RAPT_TILE_FINISHED)) /* it sees no keys */
            rapt_finish(tile->task, tile->task->running, tile->first, tile->rows);
}

/* Not inlined, so that the stack of the loop is free for what follows. */
__attribute__((noinline)) static void attend_tasks(const struct rapt_run *run, struct rapt_task *task, int heads,
                                                   int64_t next_index) {
    struct rapt_task next_task;
    struct rapt_loop loop;
    loop.task = task;
    loop.heads = heads;
    loop.next_task = NULL;
    loop.ahead.of_next_task = -1;
    if (!task->kind->streams && next_index >= 0 && next_index < run->plan->totals.all_tasks) {
        rapt_task_find(&next_task, run, next_index, 1);
        loop.next_task = &next_task;
    }
    rapt_source_open(&loop.source, task, task->visible);
    loop.tile_count = 0;
    for (int head = 0; head < loop.heads; head++)
        open_tiles(&loop, &task[head]);
    loop.takes_turns = rapt_takes_turns(run->plan, &task->work, task->rows, loop.heads);
    if (task->kind->enter)
        task->kind->enter(task);
    attend_chunks(&loop);
    if (task->kind->leave)
        task->kind->leave(task);
    if (task->work.splits == 1)
        finish_tasks(&loop);
}

void rapt_attend(const struct rapt_run *run, char *slot, int64_t index, int64_t count, int64_t next_index) {
    struct rapt_task tasks[RAPT_MOST_HEADS];
    const int heads = open_tasks(tasks, run, slot, index, count);
    attend_tasks(run, tasks, heads, next_index);
    for (int head = 0; tasks->work.splits == 1 && head < heads; head++)
        rapt_write_weights(&tasks[head]);
}
