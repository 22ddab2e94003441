/* SPDX-License-Identifier: MIT
 * Blocks and chunks begin at absolute multiples of their sizes, so their bits do not depend on how the caller cuts the
 * work. */
#include "attend.h"

#include "merge.h"
#include "prefetch.h"
#include "select.h"
#include "weights.h"

/* As few tiles as possible, equally high up to one step: low tiles are slow. */
static void open_tiles(struct rapt_loop *loop) {
    struct rapt_task *task = loop->task;
    const struct rapt_plan_body *a = task->attention;
    const struct rapt_tile_kind *kind = task->kind;
    const int step = kind->row_step, steps = (task->rows + step - 1) / step;
    const int count = (task->rows + kind->rows - 1) / kind->rows;
    const size_t panel_bytes = kind->panel_bytes(kind->rows, (int)a->desc.head_dim);
    RAPT_ASSUME(count <= RAPT_MAX_TILES);
    loop->tile_count = 0;
    for (int first = 0, rows; first < task->rows; first += rows) {
        const int number = loop->tile_count++;
        struct rapt_tile *tile = &loop->tiles[number];
        rows = (steps / count + (number < steps % count)) * step;
        tile->first = first;
        tile->rows = task->rows - first < rows ? task->rows - first : rows;
        tile->flags = 0;
        tile->visible = rapt_visible_to(&a->desc, &task->work.sequence, rapt_position(task, first),
                                        rapt_position(task, first + tile->rows - 1));
        tile->visible = rapt_intersect(tile->visible, task->visible);
        tile->panel = (float *)(void *)((char *)task->panel + (size_t)number * panel_bytes);
    }
}

/* Just before the first use, so that it finds the panel in L1. */
static void pack(const struct rapt_task *task, struct rapt_tile *tile) {
    rapt_task_pack(task, task->kind, tile->panel, tile->first, tile->rows);
    tile->flags |= RAPT_TILE_PACKED;
}

/* Whether the rows of a side can be read in turns with those of the other one: at one stride, or, by kinds with a block
 * of their own, in runs. Values that are all of the keys are read faster after them, as measured. */
static bool reads_in_turns(const struct rapt_loop *loop, int side) {
    const struct rapt_tile_kind *kind = loop->task->kind;
    const struct rapt_plan_body *a = loop->task->attention;
    const bool is_all = rapt_is_in_keys(a, side) && a->desc.value_dim == a->desc.head_dim;
    return (kind->takes_runs && !kind->score_beside && !is_all) || rapt_source_reads_on(&loop->source, side);
}

/* Whether turns take keys and values of so many dims. */
static bool has_turns_for(const struct rapt_tile_kind *kind, int64_t key_dim, int64_t value_dim) {
    const int64_t most = key_dim > value_dim ? key_dim : value_dim;
    return key_dim == value_dim || (kind->beside_unlike > 0 && most > kind->beside_unlike);
}

/* Whether turns can read the rows: whole lines, or whole blocks that follow each other without gaps, since most kinds
 * read whole vectors. */
static bool lies_in_lines(const struct rapt_loop *loop, int side) {
    const struct rapt_plan_body *a = loop->task->attention;
    const int64_t row_bytes = rapt_format_row_bytes(a->format[side], rapt_dim_of(a, side));
    const bool is_dense = rapt_tensor_of(a, side)->token_stride_bytes == row_bytes;
    return loop->task->kind->beside_rests || row_bytes % 64 == 0 ||
           (rapt_format_info(a->format[side])->elements > 1 && is_dense);
}

/* Whether keys of a block can be scored beside the values of the one before it. */
static void open_scores(struct rapt_loop *loop) {
    const struct rapt_task *task = loop->task;
    const struct rapt_plan_body *a = task->attention;
    const unsigned excludes = RAPT_PART_MASK | RAPT_PART_BIAS | RAPT_PART_SELECT;
    loop->scored = (struct rapt_scored){
        .usable = loop->tile_count == 1 && !(a->mask_parts & excludes) &&
                  loop->tiles[0].rows <= task->kind->beside_rows[a->format[RAPT_KEYS]] &&
                  a->format[RAPT_KEYS] == a->format[RAPT_VALUES] &&
                  has_turns_for(task->kind, a->desc.head_dim, a->desc.value_dim) &&
                  lies_in_lines(loop, RAPT_KEYS) && lies_in_lines(loop, RAPT_VALUES) &&
                  reads_in_turns(loop, RAPT_KEYS) && reads_in_turns(loop, RAPT_VALUES),
        .base = -1};
}

/* Where the scores of a block lie, and those of the next one. */
static void set_scores(struct rapt_loop *loop, const struct rapt_tile *tile, struct rapt_block *block) {
    struct rapt_scored *scored = &loop->scored;
    const int64_t second = (int64_t)RAPT_BLOCK_KEYS * tile->rows;
    block->is_scored = !block->careful && scored->base == block->base;
    scored->here ^= block->is_scored;
    block->scores = loop->task->scores + scored->here * second;
    if (block->careful)
        scored->base = -1; /* its scores may lie where those of the next block were */
    if (block->careful || !scored->usable)
        return;
    scored->base = rapt_next_block(tile->visible, block->base + RAPT_BLOCK_KEYS);
    const struct rapt_span keys = rapt_block_of(tile->visible, scored->base);
    if (scored->base >= 0)
        block->next = (struct rapt_next_scores){.scores = loop->task->scores + !scored->here * second,
                                                .base = scored->base,
                                                .key_begin = (int)(keys.begin - scored->base),
                                                .key_end = (int)(keys.end - scored->base)};
}

/* Where masks leave few keys, those of the next block are expected to be few, too: memory is asked for these alone. */
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

static void attend_block(struct rapt_loop *loop, struct rapt_tile *tile, int64_t base, bool careful) {
    struct rapt_task *task = loop->task;
    struct rapt_tile_mask mask;
    struct rapt_span keys;
    struct rapt_errands errands;
    look_ahead(loop, tile, base);
    const enum rapt_seen seen = rapt_visit(task, tile->first, tile->rows, tile->visible, base, &keys, &mask);
    if (seen == RAPT_SEES_NOTHING)
        return;
    struct rapt_block block = {.task = task,
                               .source = &loop->source,
                               .mask = &mask,
                               .panel = tile->panel,
                               .state = tile->state,
                               .rows = tile->rows,
                               .base = base,
                               .key_begin = rapt_first_number(&mask, base, keys),
                               .key_end = rapt_end_number(&mask, base, keys),
                               .seen = seen,
                               .fresh = !(tile->flags & RAPT_TILE_TOUCHED),
                               .careful = careful,
                               .next.scores = NULL,
                               .of_score = NULL,
                               .of_weigh = NULL};
    set_scores(loop, tile, &block);
    if (!(tile->flags & RAPT_TILE_PACKED))
        pack(task, tile);
    tile->flags |= RAPT_TILE_TOUCHED;
    tile->flags = mask.selected ? tile->flags | RAPT_TILE_SPARSE : tile->flags & ~(unsigned)RAPT_TILE_SPARSE;
    if (seen == RAPT_SEES_SOME)
        tile->flags |= RAPT_TILE_DOUBTFUL;
    if (!careful)
        rapt_prefetch_tile(loop, tile, base, &errands, &block);
    task->kind->block(&block);
}

/* Again, without the values of excluded pairs. */
static void attend_again(struct rapt_loop *loop, struct rapt_tile *tile, int64_t chunk) {
    const int64_t end = (chunk + 1) * RAPT_CHUNK_KEYS;
    tile->flags &= ~(unsigned)RAPT_TILE_TOUCHED;
    rapt_state_clear(tile->state, tile->rows);
    for (int64_t block = chunk * RAPT_CHUNK_KEYS; block < end; block += RAPT_BLOCK_KEYS)
        attend_block(loop, tile, block, true);
}

/* Right after its last block of the chunk, while the state is in L1. */
static void close_chunk(struct rapt_loop *loop, struct rapt_tile *tile, int64_t chunk) {
    struct rapt_task *task = loop->task;
    const struct rapt_plan_body *a = task->attention;
    const int value_dim = (int)a->desc.value_dim;
    /* A weight of 0 times an excluded value that is NaN or infinite is NaN, and o stays NaN. */
    if ((tile->flags & RAPT_TILE_DOUBTFUL) &&
        !task->kind->packed_bytes &&
        !task->table->all_finite((const char *)tile->state.o, a->o_stride * 4, tile->rows, value_dim))
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
    const struct rapt_task *task = loop->task;
    for (struct rapt_tile *tile = loop->tiles; tile < loop->tiles + loop->tile_count; tile++) {
        tile->state = rapt_state_from(tile->flags & RAPT_TILE_STARTED ? task->chunk : task->running, tile->first);
        tile->flags &= ~(unsigned)(RAPT_TILE_TOUCHED | RAPT_TILE_DOUBTFUL);
        rapt_state_clear(tile->state, tile->rows);
    }
}

static void attend_chunk(struct rapt_loop *loop, int64_t chunk) {
    const struct rapt_span visible = loop->task->visible;
    const int64_t end = (chunk + 1) * RAPT_CHUNK_KEYS;
    int64_t block = rapt_next_selected(loop->task, visible, chunk * RAPT_CHUNK_KEYS), next;
    open_chunk(loop);
    for (; block >= 0 && block < end; block = next) {
        next = rapt_next_selected(loop->task, visible, block + RAPT_BLOCK_KEYS);
        rapt_prefetch_block(loop, block);
        for (int number = 0; number < loop->tile_count; number++) {
            struct rapt_tile *tile = &loop->tiles[number];
            const int64_t last = tile->visible.end < end ? tile->visible.end : end;
            attend_block(loop, tile, block, false);
            if (block < last && (next < 0 || next >= last))
                close_chunk(loop, tile, chunk);
        }
    }
}

/* Where the running state lies, and what it begins with. Only a fold from the first chunk on may be shared
 * (numerics.md, step 7): later splits keep the state of each chunk for the merge phase. */
static void open_running(struct rapt_loop *loop, int64_t chunk, bool first) {
    struct rapt_task *task = loop->task;
    const struct rapt_plan_body *a = task->attention;
    const bool is_later = task->work.splits > 1 && chunk - task->work.first_chunk >= a->split_chunks;
    if (task->work.splits > 1 && (first || is_later))
        task->running = rapt_state_of_chunk(task, chunk - task->work.first_chunk);
    else if (!first)
        return;
    for (int number = 0; number < loop->tile_count; number++)
        loop->tiles[number].flags &= ~(unsigned)RAPT_TILE_STARTED;
    if (!a->desc.initial_state.data || is_later)
        return;
    rapt_task_begin(task);
    for (int number = 0; number < loop->tile_count; number++)
        loop->tiles[number].flags |= RAPT_TILE_STARTED;
}

static void attend_chunks(struct rapt_loop *loop) {
    struct rapt_task *task = loop->task;
    const int64_t begin = task->visible.begin / RAPT_CHUNK_KEYS;
    const int64_t end = (task->visible.end + RAPT_CHUNK_KEYS - 1) / RAPT_CHUNK_KEYS;
    if (begin >= end)
        rapt_task_begin(task); /* it sees no keys */
    for (int64_t chunk = begin; chunk < end; chunk++) {
        open_running(loop, chunk, chunk == begin);
        attend_chunk(loop, chunk);
    }
}

void rapt_attend(const struct rapt_run *run, char *slot, int64_t index, int64_t count, int64_t next_index) {
    struct rapt_task task, next_task;
    struct rapt_loop loop;
    rapt_task_find(&task, run, index, count);
    rapt_task_open(&task, slot);
    loop.task = &task;
    loop.next_task = NULL;
    loop.ahead.of_next_task = -1;
    if (!task.kind->streams && next_index >= 0 && next_index < run->attention->totals.all_tasks) {
        rapt_task_find(&next_task, run, next_index, 1);
        loop.next_task = &next_task;
    }
    rapt_source_open(&loop.source, &task, task.visible);
    open_tiles(&loop);
    open_scores(&loop);
    if (task.kind->enter)
        task.kind->enter(&task);
    attend_chunks(&loop);
    if (task.kind->leave)
        task.kind->leave(&task);
    if (task.work.splits > 1)
        return;
    for (const struct rapt_tile *tile = loop.tiles; tile < loop.tiles + loop.tile_count; tile++)
        if (!(tile->flags & RAPT_TILE_FINISHED)) /* it sees no keys */
            rapt_finish(&task, task.running, tile->first, tile->rows);
    rapt_write_weights(&task);
}
