/* SPDX-License-Identifier: MIT
 * What layers compute, from the specification of attention and matrix products, a row or a pair at a time. All other
 * sums are written here once more, as docs/layers.md has them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "descriptor_run.h"
#include "layers/elementary.h"
#include "layers/philox.h"
#include "layers_model.h"
#include "reference/reference.h"
#include "reference/rows.h"
#include "support/cmocka_all.h"
#include "support/support.h"

float rounded(double x) { return isnan(x) ? float_of(0x7fc00000) : (float)x; }

float *room(float *given, int64_t count) { return given ? given : test_floats(count); }

void project_part(const rapt_linear *linear, int64_t first, int64_t width, const float *x, float *out) {
    const bool in_out = linear->layout == RAPT_WEIGHT_IN_OUT;
    rapt_matmul_desc desc = RAPT_MATMUL_DESC_INIT;
    desc.rows = 1, desc.inner = width, desc.columns = linear->out;
    desc.x = x, desc.out = out;
    desc.bias = first ? NULL : linear->bias;
    desc.weight_layout = linear->layout;
    desc.weight_stride_bytes =
        linear->weight_stride_bytes ? linear->weight_stride_bytes : 4 * (in_out ? linear->out : linear->in);
    desc.weight = linear->weight + (in_out ? first * desc.weight_stride_bytes / 4 : first);
    rapt_reference_matmul(&desc);
}

void project(const rapt_linear *linear, const float *x, float *out) {
    project_part(linear, 0, linear->in, x, out);
}

static void project_keys(const rapt_attention_desc *how, const rapt_linear *linear, const float *x, float *out) {
    for (int64_t row = 0; row < how->batch * how->kv_length; row++)
        project(linear, x + row * linear->in, out + row * linear->out);
}

bool exists(const rapt_attention_desc *how, int64_t row) {
    return row % how->query_length < rapt_reference_queries(how, row / how->query_length);
}

static void project_queries(const rapt_attention_desc *how, const rapt_linear *linear, const float *x, float *out) {
    for (int64_t row = 0; row < how->batch * how->query_length; row++)
        if (exists(how, row))
            project(linear, x + row * linear->in, out + row * linear->out);
}

void run_attention(const rapt_attention_desc *how) {
    if (how->batch > 0 && how->query_length > 0)
        attend(how);
}

rapt_tensor heads_at(const float *rows, int64_t tokens, int64_t row, int64_t first, int64_t step) {
    return (rapt_tensor){.data = (float *)(uintptr_t)(rows + first), .dtype = RAPT_F32, .head_stride_bytes = 4 * step,
                         .token_stride_bytes = 4 * row, .batch_stride_bytes = 4 * row * tokens};
}

void write_scores(const rapt_attention_desc *how, float *scores) {
    const int64_t b = how->batch, hq = how->query_heads, tq = how->query_length, tk = how->kv_length;
    rapt_attention_desc raw = RAPT_ATTENTION_DESC_INIT;
    if (!scores)
        return;
    raw.isa = how->isa;
    raw.numerics = how->numerics;
    raw.batch = b, raw.query_heads = hq, raw.kv_heads = how->kv_heads, raw.query_length = tq, raw.kv_length = tk;
    raw.head_dim = how->head_dim, raw.value_dim = 1;
    raw.query_lengths = how->query_lengths;
    raw.query = how->query, raw.key = how->key, raw.value = how->key;
    raw.features = RAPT_SCALE, raw.scale = 1;
    raw.out = rapt_output_bhsd(test_floats(b * hq * tq), b, hq, tq, 1);
    raw.weights = rapt_output_bhsd(scores, b, hq, tq, tk);
    raw.weights_kind = RAPT_WEIGHTS_RAW;
    run_attention(&raw);
}

void add(const float *a, const float *b, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = rounded((double)(a[i] + b[i]));
}

static double sum_in_eight(const double *x, int64_t count) {
    double sums[8] = {0}, sum = 0;
    for (int64_t i = 0; i < count; i++)
        sums[i % 8] += x[i];
    for (int i = 0; i < 8; i++)
        sum += sums[i];
    return sum;
}

void normalise(const rapt_norm *norm, const float *x, int64_t width, float *out) {
    double *numbers = malloc((size_t)width * sizeof *numbers); /* there may be more rows than test_alloc serves */
    assert_non_null(numbers);
    for (int64_t i = 0; i < width; i++)
        numbers[i] = (double)x[i];
    const double mean = sum_in_eight(numbers, width) / (double)width;
    for (int64_t i = 0; i < width; i++)
        numbers[i] = ((double)x[i] - mean) * ((double)x[i] - mean);
    const double inverse = 1 / sqrt(sum_in_eight(numbers, width) / (double)width + (double)norm->epsilon);
    for (int64_t i = 0; i < width; i++)
        out[i] = rounded(((double)x[i] - mean) * inverse * (norm->gamma ? (double)norm->gamma[i] : 1) +
                        (norm->beta ? (double)norm->beta[i] : 0));
    free(numbers);
}

float additive_score(const float *v, const float *a, const float *b, int64_t units) {
    double sum = 0;
    for (int64_t k = 0; k < units; k++)
        sum += (double)v[k] * rapt_tanh((double)a[k] + (double)b[k]);
    return rounded(sum);
}

void attend_to(rapt_attention_desc *how, const float *scores) {
    how->head_dim = 1;
    how->query = how->key = heads_at(memset(test_floats(1), 0, 4), 0, 0, 0, 0);
    how->bias = heads_at(scores, how->query_length, how->kv_length, 0, 0);
}

/* ---- layers */

static void model_dot_product(const void *desc) {
    const rapt_dot_product_desc *dot = desc;
    const int64_t tq = dot->query_length, tk = dot->kv_length, d = dot->head_dim, n = dot->leading;
    const int64_t e = dot->value_dim ? dot->value_dim : d;
    int64_t each = 1;
    for (int64_t i = 0; i < n; i++)
        each *= dot->shape[i];
    for (int64_t at = 0; at < each; at++) {
        rapt_attention_desc one = {.struct_size = sizeof one, .features = dot->features, .isa = dot->isa, .batch = 1,
                                   .query_heads = 1, .kv_heads = 1, .query_length = tq, .kv_length = tk, .head_dim = d,
                                   .value_dim = e, .scale = dot->scale, .mask_fill = dot->mask_fill,
                                   .query_origin = dot->query_origin};
        one.query = heads_at(dot->query + at * tq * d, tq, d, 0, 0);
        one.key = heads_at(dot->key + at * tk * d, tk, d, 0, 0);
        one.value = heads_at(dot->value + at * tk * e, tk, e, 0, 0);
        one.out = heads_at(dot->out + at * tq * e, tq, e, 0, 0);
        if (dot->weights)
            one.weights = heads_at(dot->weights + at * tq * tk, tq, tk, 0, 0), one.weights_kind = RAPT_WEIGHTS_SOFTMAX;
        if (dot->mask) {
            const int64_t *shape = dot->mask_shape;
            int64_t stride = shape[n] * shape[n + 1], offset = 0, rest = at;
            for (int64_t i = n - 1; i >= 0; rest /= dot->shape[i], stride *= shape[i], i--)
                offset += shape[i] == 1 ? 0 : rest % dot->shape[i] * stride;
            one.mask = rapt_bool_mask(dot->mask + offset, 0, 0, shape[n] == 1 ? 0 : tk);
        }
        write_scores(&one, dot->scores ? dot->scores + at * tq * tk : NULL);
        run_attention(&one);
    }
}

static void place_fused(rapt_attention_desc *how, const rapt_multi_head_desc *heads, const float *rows) {
    const int64_t hq = how->query_heads, hk = how->kv_heads, d = how->head_dim = value_dim_of(how, heads);
    const bool blocks = heads->fused_order == RAPT_FUSED_BLOCKS;
    const int64_t tokens = how->query_length, row = heads->fused.out, step = blocks ? d : 3 * d;
    how->value_dim = d;
    how->query = heads_at(rows, tokens, row, 0, step);
    how->key = heads_at(rows, tokens, row, blocks ? hq * d : d, step);
    how->value = heads_at(rows, tokens, row, blocks ? (hq + hk) * d : 2 * d, step);
}

static void run_heads(const rapt_multi_head_desc *heads, const float *x, float *out) {
    rapt_attention_desc how = *heads->attention;
    const int64_t queries = how.batch * how.query_length, keys = how.batch * how.kv_length;
    const int64_t tq = how.query_length, tk = how.kv_length, e = value_dim_of(&how, heads);
    if (heads->fused.weight) {
        float *rows = room(heads->fused_out, queries * heads->fused.out);
        project_keys(&how, &heads->fused, x, rows);
        place_fused(&how, heads, rows);
    } else {
        const float *memory = heads->memory ? heads->memory : x;
        float *query = room(heads->query_out, queries * heads->query.out);
        float *key = room(heads->key_out, keys * heads->key.out);
        float *value = room(heads->value_out, keys * heads->value.out);
        project_queries(&how, &heads->query, x, query);
        project_keys(&how, &heads->key, memory, key);
        project_keys(&how, &heads->value, heads->memory_value ? heads->memory_value : memory, value);
        how.head_dim = heads->key.out / how.kv_heads, how.value_dim = e;
        how.query = heads_at(query, tq, heads->query.out, 0, how.head_dim);
        how.key = heads_at(key, tk, heads->key.out, 0, how.head_dim);
        how.value = heads_at(value, tk, heads->value.out, 0, e);
    }
    const int64_t row = how.query_heads * e;
    float *context = heads->output.weight ? room(heads->context, queries * row) : out;
    how.out = heads_at(context, tq, row, 0, e);
    write_scores(&how, heads->scores);
    run_attention(&how);
    if (heads->output.weight)
        project_queries(&how, &heads->output, context, out);
}

static void model_heads(const void *desc) {
    const rapt_multi_head_desc *heads = desc;
    run_heads(heads, heads->x, heads->out);
}

static void model_stacked(const void *desc) {
    const rapt_stacked_desc *stacked = desc;
    rapt_attention_desc how = *stacked->attention;
    const int64_t heads = how.query_heads, tokens = how.query_length, rows = how.batch * tokens;
    const int64_t d = how.head_dim = stacked->query->out, e = how.value_dim = stacked->value->out;
    const rapt_linear *const lists[] = {stacked->query, stacked->key, stacked->value};
    rapt_tensor *const tensors[] = {&how.query, &how.key, &how.value};
    for (int i = 0; i < 3; i++) {
        const int64_t width = lists[i]->out;
        float *to = test_floats(rows * heads * width);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t h = 0; h < heads; h++)
                project(&lists[i][h], stacked->x + row * lists[i][h].in, to + (row * heads + h) * width);
        *tensors[i] = heads_at(to, tokens, heads * width, 0, i == 2 ? e : d);
    }
    how.out = heads_at(stacked->out, tokens, heads * e, 0, e);
    run_attention(&how);
}

static void activate(float *x, int64_t count, int32_t activation) {
    for (int64_t i = 0; i < count; i++)
        x[i] = activation == RAPT_RELU   ? x[i] < 0 ? 0 : x[i]
               : activation == RAPT_GELU ? (float)rapt_gelu((double)x[i])
                                         : (float)rapt_gelu_tanh((double)x[i]);
}

static void model_encoder(const void *desc) {
    const rapt_encoder_desc *block = desc;
    const rapt_multi_head_desc *heads = block->attention;
    const rapt_attention_desc *how = heads->attention;
    const int64_t width = block->ff2.out, rows = how->batch * how->query_length;
    float *attended = room(heads->out, rows * width), *norm1 = room(block->norm1_out, rows * width);
    float *ff = room(block->ff_out, rows * width), *hidden = test_floats(block->ff1.out);
    float *sum = test_floats(width), *norm2 = test_floats(width);
    for (int64_t row = 0; block->pre_norm && row < rows; row++)
        normalise(&block->norm1, block->x + row * width, width, norm1 + row * width);
    run_heads(heads, block->pre_norm ? norm1 : block->x, attended);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t at = row * width;
        float *normed = block->pre_norm ? norm2 : norm1 + at;
        if (!exists(how, row))
            continue;
        add(block->x + at, attended + at, width, sum);
        normalise(block->pre_norm ? &block->norm2 : &block->norm1, sum, width, normed);
        project(&block->ff1, normed, hidden);
        activate(hidden, block->ff1.out, block->activation);
        project(&block->ff2, hidden, ff + at);
        add(block->pre_norm ? sum : normed, ff + at, width, block->pre_norm ? block->out + at : sum);
        if (!block->pre_norm)
            normalise(&block->norm2, sum, width, block->out + at);
    }
}

static void model_additive(const void *desc) {
    const rapt_additive_desc *additive = desc;
    rapt_attention_desc how = *additive->attention;
    const int64_t tq = how.query_length, tk = how.kv_length, units = additive->w.out, e = additive->u.in;
    float *of_state = test_floats(how.batch * tq * units), *of_memory = test_floats(how.batch * tk * units);
    float *scores = room(additive->scores, how.batch * tq * tk);
    project_queries(&how, &additive->w, additive->state, of_state);
    project_keys(&how, &additive->u, additive->memory, of_memory);
    for (int64_t i = 0; i < how.batch * tq * tk; i++) {
        const int64_t query = i / tk, key = query / tq * tk + i % tk;
        if (exists(&how, query))
            scores[i] = additive_score(additive->v, of_state + query * units, of_memory + key * units, units);
    }
    attend_to(&how, scores);
    how.features |= RAPT_SCALE, how.scale = 1;
    how.value_dim = e;
    how.value = heads_at(additive->memory, tk, e, 0, 0);
    how.out = heads_at(additive->out, tq, e, 0, 0);
    run_attention(&how);
}

static void model_norm(const void *desc) {
    const struct norm_call *call = desc;
    for (int64_t at = 0; at < call->tokens * call->width; at += call->width)
        normalise(&call->norm, call->x + at, call->width, call->out + at);
}

static void model_embedding(const void *desc) {
    const struct embedding_call *call = desc;
    for (int64_t i = 0; i < call->count; i++)
        memcpy(call->out + i * call->width, call->table + rapt_reference_entry(call->ids, i, 0) * call->width,
               (size_t)call->width * sizeof *call->out);
}

static void model_keep(const void *desc) {
    const struct keep_call *call = desc;
    const uint32_t key[2] = {(uint32_t)call->seed, (uint32_t)(call->seed >> 32)};
    for (int64_t i = 0; i < call->count; i++) {
        const uint64_t n = call->first + (uint64_t)i;
        const uint32_t counter[4] = {(uint32_t)(n / 4), (uint32_t)(n / 4 >> 32), (uint32_t)call->stream,
                                     (uint32_t)(call->stream >> 32)};
        uint32_t words[4];
        rapt_philox(counter, key, words);
        call->keep[i] = words[n % 4] >= floor(call->drop * 0x1p32);
    }
}

void layer_model(const void *layer) {
    static fuzzed_reference *const models[] = {model_dot_product, model_heads, model_stacked,
                                               model_encoder,     model_additive, model_luong,
                                               model_norm,        model_embedding, model_keep};
    const struct fuzzed_layer *l = layer;
    models[l->kind](l->desc);
    test_free_all();
}
