/* SPDX-License-Identifier: MIT */
#include "plan/work.h"

#include <string.h>

#include "checked.h"
#include "pages.h"
#include "plan/listed.h"
#include "plan/turns.h"
#include "plan/work_kind.h"

enum {
    SPLIT_ROWS = 64,   /* with more rows, states cost more than they gain */
    SPLIT_TASKS = 128, /* enough tasks for large machines */
    SPLIT_CHUNKS = 4   /* of a task at least */
};

static void find_chunks(const struct rapt_plan_body *plan, struct rapt_work *work) {
    const struct rapt_sequence *s = &work->sequence;
    const int64_t last = s->query_position + (s->query_length > 0 ? s->query_length - 1 : 0);
    const struct rapt_span visible = rapt_visible_to(&plan->desc, s, s->query_position, last);
    work->first_chunk = visible.begin / RAPT_CHUNK_KEYS;
    work->chunks = rapt_quotient_up(visible.end, RAPT_CHUNK_KEYS) - work->first_chunk;
    work->chunks = work->chunks < 0 ? 0 : work->chunks;
}

/* The fewest chunks of a task: more if lists name few of the keys. */
static int64_t least_chunks(double listed_share) {
    const int64_t chunks = listed_share < 1.0 / INT32_MAX ? INT32_MAX : (int64_t)(SPLIT_CHUNKS / listed_share);
    return listed_share < 1 ? rapt_larger(chunks, SPLIT_CHUNKS) : SPLIT_CHUNKS;
}

/* Few rows against many keys may be split: several tasks share a row block. */
static bool may_split(const struct rapt_plan_body *plan, const struct rapt_work *work) {
    return work->row_blocks == 1 && work->task_rows <= SPLIT_ROWS && work->chunks >= 2 * plan->least_chunks;
}

/* Whether the tokens of a sequence are among the packed ones. */
static bool lies_within(rapt_index_list offsets, int64_t first, int64_t length, int64_t tokens) {
    return !offsets.data || (first >= 0 && first <= tokens - length);
}

static bool find_pages(const rapt_attention_desc *desc, int64_t batch, int64_t checked_bytes[RAPT_SIDES],
                       struct rapt_sequence *s) {
    int64_t *const of_values = checked_bytes && !rapt_is_one_table(desc) ? checked_bytes + RAPT_VALUES : NULL;
    return rapt_pages_find(desc, RAPT_KEYS, batch, checked_bytes, s, NULL) == RAPT_OK &&
           rapt_pages_find(desc, RAPT_VALUES, batch, of_values, s, NULL) == RAPT_OK;
}

/* Lists are read again after they were checked, and any thread may have changed them, so the values read here must be
 * legal. checked_bytes: those of page entries, too, as in pages.h; NULL = not. */
static bool read_sequence(const struct rapt_plan_body *plan, int64_t batch, int64_t checked_bytes[RAPT_SIDES],
                          struct rapt_sequence *s) {
    const rapt_attention_desc *desc = &plan->desc;
    const int64_t most = 2 * RAPT_MAX_POSITION; /* a query's, counted from the last key, may exceed RAPT_MAX_POSITION */
    *s = rapt_sequence_of(desc, batch);
    return s->query_length >= 0 && s->query_length <= desc->query_length && s->kv_length >= 0 &&
           s->kv_length <= desc->kv_length && s->key_position >= 0 && s->key_position <= most &&
           s->query_position >= -most && s->query_position <= most &&
           lies_within(desc->query_offsets, s->query_first, s->query_length, desc->query_tokens) &&
           lies_within(desc->kv_offsets, s->kv_first[RAPT_KEYS], s->kv_length, desc->kv_tokens) &&
           find_pages(desc, batch, checked_bytes, s);
}

/* Sets all but the splits and the place among other works, from work->sequence. */
static void shape(const struct rapt_plan_body *plan, struct rapt_work *work) {
    work->batch = work->first_task = work->first_merge = work->first_state = 0;
    work->splits = 1;
    rapt_choose_kind(plan, work);
    find_chunks(plan, work);
    work->heads = rapt_heads_in_turns(plan, work);
}

static void split(const struct rapt_plan_body *plan, struct rapt_work *work) {
    if (may_split(plan, work) && work->chunks > plan->split_chunks)
        work->splits = rapt_quotient_up(work->chunks, plan->split_chunks);
}

struct rapt_work rapt_work_cut(const struct rapt_plan_body *plan, const struct rapt_sequence *sequence) {
    struct rapt_work work;
    work.sequence = *sequence;
    shape(plan, &work);
    split(plan, &work);
    return work;
}

/* Chunks of a KV head that may be split. */
static int64_t chunks_to_split(const struct rapt_plan_body *plan, const struct rapt_work *work) {
    return may_split(plan, work) ? work->chunks : 0;
}

/* Chunks per split, such that the splits of all sequences are about equal. */
static int64_t even_split(const struct rapt_plan_body *plan) {
    int64_t chunks = plan->works_differ ? 0 : plan->desc.batch * chunks_to_split(plan, &plan->each);
    for (int64_t b = 0; plan->works_differ && b < plan->desc.batch; b++) {
        struct rapt_work work;
        if (!read_sequence(plan, b, NULL, &work.sequence))
            return INT64_MAX;
        shape(plan, &work);
        chunks += chunks_to_split(plan, &work);
    }
    return rapt_larger(rapt_quotient_up(chunks * plan->desc.kv_heads, SPLIT_TASKS), plan->least_chunks);
}

/* Adds scratch of some tiles of a kind. Widened queries lie where the scores will. */
static void add_tiles(const struct rapt_plan_body *plan, const struct rapt_tile_kind *kind, int64_t tiles, int64_t rows,
                      struct rapt_totals *totals) {
    const int head_dim = (int)plan->desc.head_dim, dim = (int)rapt_larger(plan->desc.head_dim, plan->desc.value_dim);
    const int64_t most = rows < kind->rows ? rows : kind->rows;
    totals->panel_bytes = rapt_larger(totals->panel_bytes, tiles * (int64_t)kind->panel_bytes(kind->rows, head_dim));
    totals->scores_bytes = rapt_larger(totals->scores_bytes, (int64_t)kind->scores_bytes(kind->rows, dim));
    if (plan->query_format != RAPT_FORMAT_F32)
        totals->scores_bytes = rapt_larger(totals->scores_bytes, most * head_dim * (int64_t)sizeof(float));
    if (plan->bias_format != RAPT_FORMAT_F32)
        totals->bias_rows = rapt_larger(totals->bias_rows, most);
}

/* Adds scratch of a task of the work. */
static void add_scratch(const struct rapt_plan_body *plan, const struct rapt_work *work, struct rapt_totals *totals) {
    const struct rapt_tile_kind *kind = &plan->table->kinds[work->kind];
    totals->rows = rapt_larger(totals->rows, work->task_rows);
    totals->heads = rapt_larger(totals->heads, work->heads);
    totals->further_rows = rapt_larger(totals->further_rows, work->heads > 1 ? work->task_rows : 0);
    add_tiles(plan, kind, rapt_quotient_up(work->task_rows, kind->rows), work->task_rows, totals);
    for (int side = 0; side < RAPT_SIDES; side++)
        if (work->stages[side])
            totals->staged_keys[side] =
                rapt_larger(totals->staged_keys[side], rapt_staged_keys(kind, side, rapt_dim_of(plan, side)));
    if (plan->desc.weights_kind != RAPT_WEIGHTS_NONE)
        add_tiles(plan, &plan->table->kinds[RAPT_NARROW], 1, work->task_rows, totals);
}

/* Whether scratch for `most` suffices: all that add_scratch adds. */
static bool fits_scratch(const struct rapt_totals *sum, const struct rapt_totals *most) {
    return sum->rows <= most->rows && sum->heads <= most->heads && sum->further_rows <= most->further_rows &&
           sum->panel_bytes <= most->panel_bytes && sum->scores_bytes <= most->scores_bytes &&
           sum->bias_rows <= most->bias_rows && sum->staged_keys[RAPT_KEYS] <= most->staged_keys[RAPT_KEYS] &&
           sum->staged_keys[RAPT_VALUES] <= most->staged_keys[RAPT_VALUES];
}

double rapt_stored_bytes(const struct rapt_plan_body *plan, const struct rapt_work *work) {
    double bytes = 0;
    for (int side = 0; side < RAPT_SIDES; side++)
        bytes += (double)rapt_format_row_bytes(plan->format[side], rapt_dim_of(plan, side));
    return bytes * (double)plan->desc.kv_heads * (double)work->sequence.kv_length;
}

/* Nothing overflows: check_products (validate/validate.c) bounds the scores, of which there are no fewer than tasks,
 * and 4096 bytes for each key of each head, which is more than states take. */
static void add(const struct rapt_plan_body *plan, const struct rapt_work *work, int64_t times,
                struct rapt_totals *totals) {
    const int64_t heads = plan->desc.kv_heads * times, tasks = heads * work->row_blocks * work->splits;
    const int64_t state_bytes = rapt_state_bytes(work->task_rows, plan->o_stride);
    totals->all_tasks += tasks;
    totals->state_bytes += work->splits > 1 ? heads * work->chunks * state_bytes : 0;
    totals->sequences[work->kind] += times;
    totals->tasks[work->kind] += tasks;
    totals->merges[work->kind] += work->splits > 1 ? heads : 0;
    totals->all_merges += work->splits > 1 ? heads : 0;
    totals->multiplications += (double)heads * (double)plan->group * (double)work->sequence.query_length *
                               (double)work->sequence.kv_length * (double)(plan->desc.head_dim + plan->desc.value_dim) *
                               plan->listed_share;
    totals->stored_bytes += (double)times * rapt_stored_bytes(plan, work);
    add_scratch(plan, work, totals);
}

static bool add_up(const struct rapt_plan_body *plan, struct rapt_totals *totals) {
    *totals = (struct rapt_totals){.rows = 1, .heads = 1};
    if (!plan->works_differ && plan->desc.batch > 0)
        add(plan, &plan->each, plan->desc.batch, totals);
    for (int64_t b = 0; plan->works_differ && b < plan->desc.batch; b++) {
        struct rapt_sequence sequence;
        if (!read_sequence(plan, b, NULL, &sequence))
            return false;
        const struct rapt_work work = rapt_work_cut(plan, &sequence);
        add(plan, &work, 1, totals);
        rapt_work_digest(plan, &work, &totals->digest);
    }
    return true;
}

static bool cut_with(struct rapt_plan_body *plan, int64_t split_chunks) {
    plan->split_chunks = split_chunks;
    plan->each.splits = 1;
    if (!plan->works_differ)
        split(plan, &plan->each);
    return add_up(plan, &plan->totals);
}

bool rapt_work_cut_all(struct rapt_plan_body *plan) {
    plan->listed_share = plan->desc.key_blocks.query_tokens ? rapt_listed_share(&plan->desc) : 1;
    plan->least_chunks = least_chunks(plan->listed_share);
    if (!plan->works_differ && plan->desc.batch > 0) {
        plan->each.sequence = rapt_sequence_of(&plan->desc, 0);
        shape(plan, &plan->each);
    } else {
        plan->each = (struct rapt_work){.splits = 1, .heads = 1};
    }
    const bool is_legal = cut_with(plan, even_split(plan));
    return is_legal && plan->totals.state_bytes > RAPT_MOST_STATE_BYTES ? cut_with(plan, INT64_MAX) : is_legal;
}

/* Whether a sequence in a capacity may get a kind. */
static bool may_occur(const struct rapt_plan_body *plan, int32_t kind, int64_t most_rows) {
    const struct rapt_tile_kind *kinds = plan->table->kinds, *narrow = &kinds[RAPT_NARROW];
    if (plan->desc.kv_length < kinds[kind].least_keys || plan->desc.head_dim < kinds[kind].least_dim ||
        (kind == RAPT_FEW && kinds[kind].most_rows == narrow->most_rows))
        return false;
    return kind == RAPT_NARROW || most_rows > narrow->most_rows || plan->desc.head_dim < narrow->least_dim;
}

/* The most keys that the queries of a splittable work see. */
static int64_t most_visible(const rapt_attention_desc *desc) {
    const int64_t left = desc->window_left, right = desc->features & RAPT_CAUSAL ? 0 : desc->window_right;
    int64_t keys;
    if (!(desc->features & RAPT_WINDOW) || left < 0 || right < 0 || !rapt_add_fits(left, right, &keys) ||
        !rapt_add_fits(keys, SPLIT_ROWS, &keys))
        return desc->kv_length;
    return keys < desc->kv_length ? keys : desc->kv_length;
}

/* The most scratch of any kind, with as many rows as it may get, at any strides and page lengths; fewer than
 * SPLIT_TASKS heads are split, as each of them has more than an equal share of all chunks. */
void rapt_work_bound(const struct rapt_plan_body *plan, struct rapt_totals *totals) {
    struct rapt_plan_body any = *plan;
    any.collides[RAPT_KEYS] = any.collides[RAPT_VALUES] = true;
    any.desc.key_pages.page_tokens = any.desc.value_pages.page_tokens = 1;
    any.desc.key_blocks.query_tokens = 0; /* lists make tasks smaller */
    const int64_t most_rows = plan->group * plan->desc.query_length, heads = plan->desc.batch * plan->desc.kv_heads;
    *totals = (struct rapt_totals){.rows = 1, .heads = 1};
    for (int32_t kind = 0; kind < RAPT_KINDS; kind++) {
        if (!may_occur(plan, kind, most_rows))
            continue;
        const int64_t of_kind = plan->table->kinds[kind].most_rows, rows = of_kind < most_rows ? of_kind : most_rows;
        struct rapt_work work = {
            .sequence.query_length = rapt_quotient_up(rows, plan->group), .kind = kind, .heads = 1};
        rapt_work_cut_rows(&any, &work);
        work.task_rows = work.task_rows < rows || rows == 0 ? work.task_rows : (int32_t)rows;
        if (rapt_has_heads_in_turns(&plan->table->kinds[kind])) /* at any strides */
            work.heads = plan->desc.kv_heads < RAPT_MOST_HEADS ? (int32_t)plan->desc.kv_heads : RAPT_MOST_HEADS;
        add_scratch(&any, &work, totals);
    }
    totals->all_tasks = INT64_MAX;
    const int64_t split_heads = heads < SPLIT_TASKS ? heads : SPLIT_TASKS;
    const int64_t rows = most_rows < SPLIT_ROWS ? most_rows : SPLIT_ROWS;
    const int64_t chunks = most_visible(&plan->desc) / RAPT_CHUNK_KEYS + 2;
    const int64_t bytes = split_heads * rapt_state_bytes(rows, plan->o_stride) * chunks;
    if (chunks >= 2 * SPLIT_CHUNKS && rows > 0)
        totals->state_bytes = bytes < RAPT_MOST_STATE_BYTES ? bytes : RAPT_MOST_STATE_BYTES;
}

size_t rapt_work_table_bytes(const struct rapt_plan_body *plan) {
    return plan->works_differ ? (size_t)plan->desc.batch * sizeof(struct rapt_work) : 0;
}

/* Where the works, tasks and merges of each kind begin. */
static struct rapt_totals first_numbers(const struct rapt_totals *totals) {
    struct rapt_totals first = {0};
    for (int kind = RAPT_KINDS - 2; kind >= 0; kind--) {
        first.sequences[kind] = first.sequences[kind + 1] + totals->sequences[kind + 1];
        first.tasks[kind] = first.tasks[kind + 1] + totals->tasks[kind + 1];
        first.merges[kind] = first.merges[kind + 1] + totals->merges[kind + 1];
    }
    return first;
}

/* Without lists all sequences have the pages of the first one, if any. */
static bool has_legal_pages(const struct rapt_plan_body *plan) {
    struct rapt_sequence first;
    int64_t checked_bytes[RAPT_SIDES] = {0};
    const bool has_pages = plan->desc.key_pages.kind || plan->desc.value_pages.kind;
    return !has_pages || plan->desc.batch == 0 || read_sequence(plan, 0, checked_bytes, &first);
}

bool rapt_work_write(const struct rapt_plan_body *plan, struct rapt_work *table) {
    if (!plan->works_differ)
        return has_legal_pages(plan);
    const struct rapt_totals first = first_numbers(&plan->totals);
    struct rapt_totals sum = {.rows = 1, .heads = 1};
    int64_t checked_bytes[RAPT_SIDES] = {0};
    for (int64_t b = 0; b < plan->desc.batch; b++) {
        struct rapt_sequence sequence;
        if (!read_sequence(plan, b, checked_bytes, &sequence))
            return false;
        struct rapt_work work = rapt_work_cut(plan, &sequence);
        const int kind = work.kind;
        work.batch = b;
        work.first_task = first.tasks[kind] + sum.tasks[kind];
        work.first_merge = first.merges[kind] + sum.merges[kind];
        work.first_state = sum.state_bytes;
        const int64_t place = sum.sequences[kind];
        if (place == plan->totals.sequences[kind])
            return false;
        add(plan, &work, 1, &sum);
        table[first.sequences[kind] + place] = work;
    }
    return memcmp(sum.tasks, plan->totals.tasks, sizeof sum.tasks) == 0 &&
           memcmp(sum.merges, plan->totals.merges, sizeof sum.merges) == 0 &&
           sum.state_bytes <= plan->totals.state_bytes && fits_scratch(&sum, &plan->totals);
}
