/* SPDX-License-Identifier: MIT
 * Projections, attention per head, output projection. Heads are never copied
 * apart: a projection's row holds them side by side, and the engine's strides
 * step from one to the next. */
#include "layers/multi_head.h"

#include "layers/rows.h"

/* Where the heads of a projection lie: [batch][tokens][row], head h at first + h * step. */
static rapt_tensor heads_of(const float *data, int64_t tokens, int64_t row, int64_t first, int64_t step) {
    rapt_tensor tensor = {.data = data ? (void *)(uintptr_t)(data + first) : NULL, .dtype = RAPT_F32};
    tensor.head_stride_bytes = step * (int64_t)sizeof(float);
    tensor.token_stride_bytes = row * (int64_t)sizeof(float);
    tensor.batch_stride_bytes = tokens * tensor.token_stride_bytes;
    return tensor;
}

static int64_t divided(struct rapt_call *call, const char *name, int64_t columns, int64_t heads) {
    if (columns % heads)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "%s = %lld does not divide into %lld heads", name,
                         (long long)columns, (long long)heads);
    return columns / heads;
}

static void shape_split(struct rapt_call *call, const rapt_multi_head_desc *desc, rapt_attention_desc *all) {
    const bool memory = desc->memory != NULL;
    if (!rapt_call_linear(call, "query", &desc->query, 0, "") ||
        !rapt_call_linear(call, "key", &desc->key, memory ? 0 : desc->query.in, "x has query.in =") ||
        !rapt_call_linear(call, "value", &desc->value, desc->memory_value ? 0 : desc->key.in,
                          memory ? "memory has key.in =" : "x has key.in ="))
        return;
    all->head_dim = divided(call, "query.out", desc->query.out, all->query_heads);
    all->value_dim = divided(call, "value.out", desc->value.out, all->kv_heads);
    if (call->status == RAPT_OK && desc->key.out != all->head_dim * all->kv_heads)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "key.out = %lld, but kv_heads * head_dim = %lld * %lld",
                         (long long)desc->key.out, (long long)all->kv_heads, (long long)all->head_dim);
    if (desc->fused_out)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "fused_out without fused");
}

static void shape_fused(struct rapt_call *call, const rapt_multi_head_desc *desc, rapt_attention_desc *all) {
    const bool per_head = desc->fused_order == RAPT_FUSED_PER_HEAD;
    if (!rapt_call_linear(call, "fused", &desc->fused, 0, ""))
        return;
    if (desc->query.weight || desc->key.weight || desc->value.weight || desc->query_out || desc->key_out ||
        desc->value_out || desc->memory || desc->memory_value)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "fused excludes query, key, value and memory");
    if (!per_head && desc->fused_order != RAPT_FUSED_BLOCKS)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG, "fused_order = %ld is unknown", (long)desc->fused_order);
    if (per_head && all->query_heads != all->kv_heads)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE,
                         "query_heads = %lld, kv_heads = %lld: RAPT_FUSED_PER_HEAD requires equal ones",
                         (long long)all->query_heads, (long long)all->kv_heads);
    if (call->status == RAPT_OK)
        all->head_dim = all->value_dim =
            divided(call, "fused.out", desc->fused.out, all->query_heads + 2 * all->kv_heads);
}

void rapt_shape_heads(struct rapt_call *call, const rapt_multi_head_desc *desc, rapt_attention_desc *all) {
    if (call->status != RAPT_OK)
        return;
    if (desc->fused.weight)
        shape_fused(call, desc, all);
    else
        shape_split(call, desc, all);
}

static void check_aligned(struct rapt_call *call, const rapt_multi_head_desc *desc) {
    rapt_call_aligned(call, desc->x, "x");
    rapt_call_aligned(call, desc->memory, "memory");
    rapt_call_aligned(call, desc->memory_value, "memory_value");
    rapt_call_aligned(call, desc->query_out, "query_out");
    rapt_call_aligned(call, desc->key_out, "key_out");
    rapt_call_aligned(call, desc->value_out, "value_out");
    rapt_call_aligned(call, desc->fused_out, "fused_out");
    rapt_call_aligned(call, desc->context, "context");
    rapt_call_aligned(call, desc->scores, "scores");
    rapt_call_aligned(call, desc->out, "out");
}

/* Refuses what does not fit and fills in the dimensions. */
static void shape(struct rapt_call *call, const rapt_multi_head_desc *desc, rapt_attention_desc *all) {
    rapt_shape_heads(call, desc, all);
    rapt_call_needs(call, desc->x, "x");
    rapt_call_needs(call, desc->out, "out");
    check_aligned(call, desc);
    if (desc->memory_value && !desc->memory)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "memory_value without memory");
    if (!desc->memory && all->query_length != all->kv_length)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE,
                         "query_length = %lld, kv_length = %lld: without memory they must be equal",
                         (long long)all->query_length, (long long)all->kv_length);
    if (desc->output.weight && call->status == RAPT_OK)
        rapt_call_linear(call, "output", &desc->output, all->query_heads * all->value_dim,
                         "query_heads * value_dim gives");
    if (!desc->output.weight && desc->context)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "context without output: it would be the same as out");
}

/* Places the results of the projections. */
static struct rapt_projected place(struct rapt_call *call, const rapt_multi_head_desc *desc, rapt_attention_desc *all) {
    struct rapt_projected to = {0};
    const int64_t b = all->batch, tq = all->query_length, tk = all->kv_length, d = all->head_dim;
    if (desc->fused.weight) {
        const int64_t row = desc->fused.out, hq = all->query_heads, hk = all->kv_heads;
        const bool per_head = desc->fused_order == RAPT_FUSED_PER_HEAD;
        to.fused = rapt_call_floats(call, desc->fused_out, b, tq, row);
        if (!to.fused)
            return to;
        all->query = heads_of(to.fused, tq, row, 0, per_head ? 3 * d : d);
        all->key = heads_of(to.fused, tq, row, per_head ? d : hq * d, per_head ? 3 * d : d);
        all->value = heads_of(to.fused, tq, row, per_head ? 2 * d : (hq + hk) * d, per_head ? 3 * d : d);
        return to;
    }
    to.query = rapt_call_floats(call, desc->query_out, b, tq, desc->query.out);
    to.key = rapt_call_floats(call, desc->key_out, b, tk, desc->key.out);
    to.value = rapt_call_floats(call, desc->value_out, b, tk, desc->value.out);
    if (!to.value)
        return to;
    all->query = heads_of(to.query, tq, desc->query.out, 0, d);
    all->key = heads_of(to.key, tk, desc->key.out, 0, d);
    all->value = heads_of(to.value, tk, desc->value.out, 0, all->value_dim);
    return to;
}

static void project(struct rapt_call *call, const rapt_multi_head_desc *desc, const rapt_attention_desc *all,
                    const struct rapt_projected *to) {
    const float *memory = desc->memory ? desc->memory : desc->x;
    const float *memory_value = desc->memory_value ? desc->memory_value : memory;
    const int64_t memory_rows = all->batch * all->kv_length;
    if (desc->fused.weight) { /* every row is a key too */
        rapt_call_project(call, &desc->fused, desc->x, memory_rows, to->fused, 0);
        return;
    }
    rapt_project_queries(call, all, &desc->query, desc->x, to->query);
    rapt_call_project(call, &desc->key, memory, memory_rows, to->key, 0);
    rapt_call_project(call, &desc->value, memory_value, memory_rows, to->value, 0);
}

void rapt_heads_begin(struct rapt_call *call, const rapt_multi_head_desc *desc, struct rapt_heads *heads) {
    rapt_attention_desc *all = &heads->all;
    *all = rapt_call_attention(call, desc->attention);
    shape(call, desc, all);
    if (call->status != RAPT_OK)
        return;
    const bool output = desc->output.weight != NULL;
    const int64_t rows = all->batch * all->query_length, width = all->query_heads * all->value_dim;
    heads->to = place(call, desc, all);
    heads->context =
        rapt_call_floats(call, output ? desc->context : desc->out, all->batch, all->query_length, width);
    if (output)
        rapt_call_product(call, rows, desc->output.out, 1);
    if (call->status == RAPT_OK && output &&
        rapt_call_overlap(desc->context, rows * width * (int64_t)sizeof(float), desc->out,
                          rows * desc->output.out * (int64_t)sizeof(float)))
        rapt_call_refuse(call, RAPT_OVERLAPPING_OUTPUT, "context overlaps out at %p", (void *)desc->out);
    if (call->status != RAPT_OK)
        return;
    all->out = heads_of(heads->context, all->query_length, width, 0, all->value_dim);
    rapt_call_check(call, all);
}

void rapt_heads_run(struct rapt_call *call, const rapt_multi_head_desc *desc, const struct rapt_heads *heads) {
    if (call->status != RAPT_OK)
        return;
    project(call, desc, &heads->all, &heads->to);
    rapt_call_scores(call, &heads->all, desc->scores);
    rapt_call_attend(call, &heads->all);
    if (desc->output.weight)
        rapt_project_queries(call, &heads->all, &desc->output, heads->context, desc->out);
}

rapt_status rapt_multi_head_attention(const rapt_multi_head_desc *desc, const rapt_run_options *options,
                                      rapt_message *message) {
    struct rapt_call call = rapt_call_begin(message, options, desc, sizeof *desc);
    struct rapt_heads heads;
    if (call.status == RAPT_OK) {
        rapt_heads_begin(&call, desc, &heads);
        rapt_heads_run(&call, desc, &heads);
    }
    return rapt_call_end(&call);
}
