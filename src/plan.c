/* SPDX-License-Identifier: MIT
 * shapes -> tasks, blocks, workspace: a pure function that never asks how many
 * threads there are. What it chooses is a matter of speed; no choice changes a bit. */
#include "plan.h"

enum {
    TASK_ROWS = 192,         /* a multiple of every tile height; K and V are read once per task */
    TASK_OUTPUTS = 192 * 256, /* rows x dims that keep two states of o in L2 */
    STAGED_ROWS = 192,       /* fewer do not pay for copies of keys and values */
    COLLIDING_MULTIPLE = 1024, /* bytes between tokens */
    SPLIT_ROWS = 64,         /* with more rows, states cost more than they bring */
    SPLIT_TASKS = 128,       /* enough tasks for large machines */
    SPLIT_CHUNKS = 4,        /* chunks that a task has at least */
    SMALL_WORK = 1 << 20     /* multiply-adds below which waking a thread costs more */
};

static void set_constants(struct rapt_attention *a) {
    const rapt_attention_desc *desc = &a->desc;
    a->scale = desc->features & RAPT_SCALE ? desc->scale : 1.0f / __builtin_sqrtf((float)desc->head_dim);
    a->softcap_log2e = desc->softcap * RAPT_LOG2E;
    a->score_factor = desc->softcap != 0 ? a->scale / desc->softcap : a->scale * RAPT_LOG2E;
}

/* Whether rows meet in so few sets of the caches that they drive each other out. Without gaps they do not. */
static bool rows_collide(int64_t stride_bytes, int64_t row_bytes) {
    return stride_bytes != row_bytes && stride_bytes % COLLIDING_MULTIPLE == 0 &&
           stride_bytes / COLLIDING_MULTIPLE >= 2;
}

/* Copies cost a little for each task, so they have to serve many rows. */
static bool wants_staging(const struct rapt_attention *a) {
    const rapt_attention_desc *desc = &a->desc;
    const int64_t key_bytes = desc->head_dim * 4, value_bytes = desc->value_dim * 4;
    if (a->narrow || key_bytes % 64 || value_bytes % 64 || a->group * desc->query_length < STAGED_ROWS)
        return false;
    return rows_collide(desc->key.token_stride_bytes, key_bytes) ||
           rows_collide(desc->value.token_stride_bytes, value_bytes);
}

static void cut_rows(struct rapt_attention *a) {
    int64_t rows = a->group * a->desc.query_length;
    int64_t dim = a->desc.head_dim > a->desc.value_dim ? a->desc.head_dim : a->desc.value_dim;
    int64_t tile = a->kernels->tile_rows;
    a->narrow = rows <= a->kernels->narrow_rows;
    a->tile_rows = a->narrow ? a->kernels->narrow_rows : a->kernels->tile_rows;
    a->is_staged = wants_staging(a);
    int64_t most = a->is_staged ? 2 * TASK_ROWS : TASK_ROWS;
    most = most < RAPT_MAX_TILES * a->tile_rows ? most : RAPT_MAX_TILES * a->tile_rows;
    a->task_rows = TASK_OUTPUTS / dim < most ? TASK_OUTPUTS / dim / tile * tile : most;
    if (a->task_rows < tile)
        a->task_rows = tile;
    if (a->task_rows > rows)
        a->task_rows = rows > 0 ? rows : 1;
    a->row_blocks = (rows + a->task_rows - 1) / a->task_rows;
}

/* Few rows against many keys: several tasks share a row block. */
static void cut_keys(struct rapt_attention *a) {
    int64_t heads = a->desc.batch * a->desc.kv_heads;
    /* An unaligned key_position adds a chunk. */
    a->chunks = a->desc.kv_length / RAPT_CHUNK_KEYS + 2;
    a->ranges = 1;
    a->range_chunks = a->chunks;
    bool few_rows = a->row_blocks == 1 && a->task_rows <= SPLIT_ROWS;
    if (few_rows && heads > 0 && heads < SPLIT_TASKS && a->chunks >= 2 * SPLIT_CHUNKS) {
        int64_t wanted = SPLIT_TASKS / heads;
        a->range_chunks = (a->chunks + wanted - 1) / wanted;
        if (a->range_chunks < SPLIT_CHUNKS)
            a->range_chunks = SPLIT_CHUNKS;
        a->ranges = (a->chunks + a->range_chunks - 1) / a->range_chunks;
    }
}

static bool is_small(const struct rapt_attention *a) {
    const rapt_attention_desc *desc = &a->desc;
    double work = (double)desc->batch * (double)desc->query_heads * (double)desc->query_length *
                  (double)desc->kv_length * (double)(desc->head_dim + desc->value_dim);
    return work < SMALL_WORK;
}

static void clear_strides(rapt_tensor *tensor, int64_t batch, int64_t heads, int64_t tokens) {
    if (batch == 1)
        tensor->batch_stride_bytes = 0;
    if (heads == 1)
        tensor->head_stride_bytes = 0;
    if (tokens == 1)
        tensor->token_stride_bytes = 0;
}

/* Strides of dimensions of size 1 may hold anything, and prefetches multiply them. */
static void clear_unused_strides(rapt_attention_desc *desc) {
    rapt_tensor *const of_queries[] = {&desc->query,     &desc->out, &desc->mask,   &desc->bias,
                                       &desc->keep_mask, &desc->lse, &desc->weights};
    for (size_t i = 0; i < sizeof of_queries / sizeof *of_queries; i++)
        clear_strides(of_queries[i], desc->batch, desc->query_heads, desc->query_length);
    clear_strides(&desc->key, desc->batch, desc->kv_heads, desc->kv_length);
    clear_strides(&desc->value, desc->batch, desc->kv_heads, desc->kv_length);
}

void rapt_cut(struct rapt_attention *a, const rapt_attention_desc *desc, const struct rapt_kernels *kernels) {
    a->desc = *desc;
    a->kernels = kernels;
    clear_unused_strides(&a->desc);
    if (a->desc.value_dim == 0)
        a->desc.value_dim = a->desc.head_dim;
    a->group = desc->query_heads / desc->kv_heads;
    a->o_stride = rapt_round_up(a->desc.value_dim, RAPT_VECTOR_BYTES / (int64_t)sizeof(float));
    set_constants(a);
    cut_rows(a);
    cut_keys(a);
    a->tasks = desc->batch * desc->kv_heads * a->row_blocks * a->ranges;
    a->is_small = is_small(a);
}

static size_t reserve(size_t *end, int64_t floats) {
    size_t offset = *end;
    *end += (size_t)rapt_round_up(floats * (int64_t)sizeof(float), RAPT_VECTOR_BYTES);
    return offset;
}

struct rapt_scratch_layout rapt_layout_scratch(const struct rapt_attention *a) {
    struct rapt_scratch_layout layout;
    int64_t tile_rows = a->kernels->tile_rows, narrow_rows = a->kernels->narrow_rows;
    int64_t panel_rows = rapt_round_up(a->task_rows, tile_rows > narrow_rows ? tile_rows : narrow_rows);
    size_t end = 0;
    layout.panel = reserve(&end, panel_rows * a->desc.head_dim);
    layout.scores = reserve(&end, RAPT_BLOCK_KEYS * (tile_rows > narrow_rows ? tile_rows : narrow_rows));
    layout.m = reserve(&end, a->task_rows);
    layout.l = reserve(&end, a->task_rows);
    layout.chunk_m = reserve(&end, a->task_rows);
    layout.chunk_l = reserve(&end, a->task_rows);
    layout.alpha = reserve(&end, RAPT_MAX_TILE_ROWS);
    layout.slopes = reserve(&end, a->task_rows);
    layout.final_m = reserve(&end, a->task_rows);
    layout.inverse = reserve(&end, a->task_rows);
    layout.o = reserve(&end, a->task_rows * a->o_stride);
    layout.chunk_o = reserve(&end, a->task_rows * a->o_stride);
    layout.staged = reserve(&end, a->is_staged ? 2 * RAPT_BLOCK_KEYS * (a->desc.head_dim + a->desc.value_dim) : 0);
    layout.slot_bytes = end;
    return layout;
}

bool rapt_layout_workspace(const struct rapt_attention *a, struct rapt_workspace_layout *layout) {
    /* m and l side by side, then o, for the rows of the one row block. */
    int64_t floats = 2 * rapt_round_up(a->task_rows, 16) + a->task_rows * a->o_stride;
    int64_t states = 0, bytes = 0;
    layout->state_bytes = (size_t)(floats * (int64_t)sizeof(float));
    layout->states = 0;
    if (a->ranges > 1 && (__builtin_mul_overflow(a->desc.batch * a->desc.kv_heads, a->chunks, &states) ||
                          __builtin_mul_overflow(states, (int64_t)layout->state_bytes, &bytes)))
        return false;
    layout->slots = (size_t)bytes;
    return true;
}
