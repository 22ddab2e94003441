/* SPDX-License-Identifier: MIT
 * Kinds with projections: self, multi-head, cross, fused, stacked, embedding, encoder. */
#include <stdio.h>
#include <string.h>

#include "attend/broadcast.h"
#include "common/tool.h"
#include "layer/job.h"
#include "layer/kinds.h"

/* As the library does, with file names. */
static void divides(const char *name, int64_t columns, int64_t parts, int64_t heads) {
    if (columns % parts)
        tool_die("%s gives %lld numbers, which do not divide into %lld heads", name, (long long)columns,
                 (long long)heads);
}

static void read_projections(const struct layer_job *job, rapt_multi_head_desc *layer, const struct tokens *x,
                             const struct tokens *memory, const struct tokens *memory_value, int64_t heads) {
    layer->query = job_linear(job, "q", x->width, &x->array);
    layer->key = job_linear(job, "k", memory->width, &memory->array);
    layer->value = job_linear(job, "v", memory_value->width, &memory_value->array);
    divides("w_q", layer->query.out, heads, heads);
    divides("w_v", layer->value.out, heads, heads);
    if (layer->key.out != layer->query.out)
        tool_die("w_k gives %lld numbers, w_q %lld: they are equal where queries meet keys",
                 (long long)layer->key.out, (long long)layer->query.out);
}

static void read_fused(const struct layer_job *job, rapt_multi_head_desc *layer, const struct tokens *x,
                       int64_t heads) {
    layer->fused = job_linear(job, "qkv", x->width, &x->array);
    layer->fused_order = option_one_of("fused-order", job->options->fused_order, "per-head blocks") == 1;
    divides("w_qkv", layer->fused.out, 3 * heads, heads);
}

/* Reads w_o if it exists, and returns the final numbers per token. */
static int64_t read_output(const struct layer_job *job, rapt_multi_head_desc *layer, bool needed) {
    const int64_t width = layer->fused.weight ? layer->fused.out / 3 : layer->value.out;
    char name[64];
    if (!needed && !weights_has(&job->weights, "w_o")) return width;
    snprintf(name, sizeof name, "the heads' outputs");
    const struct npy_array heads = {.path = name, .dims = 1, .shape = {width}};
    layer->output = job_linear(job, "o", width, &heads);
    return layer->output.out;
}

static rapt_multi_head_desc layer_of(struct layer_job *job) {
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = &job->how;
    return layer;
}

/* keys, values: the inputs of their projections. */
static void add_extras(struct layer_job *job, rapt_multi_head_desc *layer, const struct tokens *x,
                       const struct tokens *keys, const struct tokens *values, bool one_head) {
    const int64_t heads_width = layer->fused.weight ? layer->fused.out / 3 : layer->value.out;
    job_weights(job, x, one_head);
    if (layer->fused.weight) {
        layer->fused_out = job_extra(job, "qkv", x, layer->fused.out);
    } else {
        layer->query_out = job_extra(job, "q", x, layer->query.out);
        layer->key_out = job_extra(job, "k", keys, layer->key.out);
        layer->value_out = job_extra(job, "v", values, layer->value.out);
    }
    layer->scores = job_extra_scores(job, "scores", x, one_head);
    if (layer->output.weight) layer->context = job_extra(job, "context", x, heads_width);
}

static void run(struct layer_job *job, rapt_multi_head_desc *layer, const struct tokens *x, int64_t width) {
    rapt_message message;
    layer->x = x->data;
    layer->out = job_result(job, job->options->out, x, width);
    job_finish(job, rapt_multi_head_attention(layer, &job->run, &message), &message);
}

void layer_self(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens x = job_tokens(options->input);
    rapt_multi_head_desc layer = layer_of(&job);
    read_projections(&job, &layer, &x, &x, &x, 1);
    job_attend(&job, 1, &x, &x);
    add_extras(&job, &layer, &x, &x, &x, true);
    run(&job, &layer, &x, layer.value.out);
}

void layer_multi_head(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens x = job_tokens(options->input);
    rapt_multi_head_desc layer = layer_of(&job);
    read_projections(&job, &layer, &x, &x, &x, options->heads.value);
    const int64_t width = read_output(&job, &layer, true);
    job_attend(&job, options->heads.value, &x, &x);
    add_extras(&job, &layer, &x, &x, &x, false);
    run(&job, &layer, &x, width);
}

void layer_cross(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens x = job_tokens(options->input), memory = job_tokens(options->memory);
    struct tokens memory_value = options->memory_value ? job_tokens(options->memory_value) : memory;
    rapt_multi_head_desc layer = layer_of(&job);
    char shape[NPY_SHAPE_TEXT];
    job_same_batch(&x, &memory);
    job_same_batch(&x, &memory_value);
    if (memory_value.tokens != memory.tokens)
        tool_die("%s %s does not fit %s: %lld and %lld tokens", options->memory_value,
                 npy_shape_text(memory_value.array.dims, memory_value.array.shape, shape), options->memory,
                 (long long)memory_value.tokens, (long long)memory.tokens);
    read_projections(&job, &layer, &x, &memory, &memory_value, options->heads.value);
    const int64_t width = read_output(&job, &layer, true);
    job_attend(&job, options->heads.value, &x, &memory);
    layer.memory = memory.data;
    layer.memory_value = memory_value.data;
    add_extras(&job, &layer, &x, &memory, &memory_value, false);
    run(&job, &layer, &x, width);
}

void layer_fused(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens x = job_tokens(options->input);
    rapt_multi_head_desc layer = layer_of(&job);
    read_fused(&job, &layer, &x, options->heads.value);
    const int64_t width = read_output(&job, &layer, true);
    job_attend(&job, options->heads.value, &x, &x);
    add_extras(&job, &layer, &x, &x, &x, false);
    run(&job, &layer, &x, width);
}

/* [heads, out, in], or [heads, in, out], and [heads, out] of biases, as one linear layer each. heads: 0 = any. */
static rapt_linear *read_heads(const struct layer_job *job, const char *name, const struct tokens *x,
                               int64_t *heads) {
    char weight[8], bias[8], shape[NPY_SHAPE_TEXT], wants[NPY_SHAPE_TEXT];
    snprintf(weight, sizeof weight, "w_%s", name);
    snprintf(bias, sizeof bias, "b_%s", name);
    struct npy_array array = weights_read(&job->weights, weight), biases = {0};
    if (array.dims != 3 || array.count == 0 || (*heads && array.shape[0] != *heads))
        tool_die("%s %s: expected three dimensions, heads, out and in%s", array.path,
                 npy_shape_text(array.dims, array.shape, shape), *heads ? ", of as many heads as w_q" : "");
    *heads = array.shape[0];
    const bool in_out = option_one_of("weights-layout", job->options->weights_layout, "out-in in-out") == 1;
    const int64_t in = array.shape[in_out ? 1 : 2], out = array.shape[in_out ? 2 : 1];
    if (in != x->width)
        tool_die("%s %s does not fit %s %s: %lld and %lld numbers per token", array.path,
                 npy_shape_text(array.dims, array.shape, shape), x->array.path,
                 npy_shape_text(x->array.dims, x->array.shape, wants), (long long)in, (long long)x->width);
    if (weights_has(&job->weights, bias)) biases = weights_read(&job->weights, bias);
    if (biases.data && (biases.dims != 2 || biases.shape[0] != *heads || biases.shape[1] != out))
        tool_die("%s %s: expected [%lld, %lld]", biases.path, npy_shape_text(biases.dims, biases.shape, shape),
                 (long long)*heads, (long long)out);
    rapt_linear *list = tool_allocate(*heads, sizeof *list, array.path);
    for (int64_t h = 0; h < *heads; h++) {
        const float *data = (const float *)array.data + h * in * out;
        const float *added = biases.data ? (const float *)biases.data + h * out : NULL;
        list[h] = in_out ? rapt_linear_in_out(data, added, in, out) : rapt_linear_of(data, added, in, out);
    }
    return list;
}

void layer_stacked(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens x = job_tokens(options->input);
    rapt_stacked_desc layer = RAPT_STACKED_DESC_INIT;
    int64_t heads = 0;
    rapt_message message;
    layer.query = read_heads(&job, "q", &x, &heads);
    layer.key = read_heads(&job, "k", &x, &heads);
    layer.value = read_heads(&job, "v", &x, &heads);
    job_attend(&job, heads, &x, &x);
    job_weights(&job, &x, false);
    layer.attention = &job.how;
    layer.x = x.data;
    layer.out = job_result(&job, options->out, &x, tool_product(heads, layer.value->out, options->out));
    job_finish(&job, rapt_stacked_attention(&layer, &job.run, &message), &message);
}

void layer_embedding(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct npy_array ids = npy_read(options->ids, NPY_INT32 | NPY_INT64);
    struct npy_array table = weights_read(&job.weights, "embedding");
    rapt_multi_head_desc layer = layer_of(&job);
    char shape[NPY_SHAPE_TEXT];
    rapt_message message;
    if (ids.dims != 1 && ids.dims != 2)
        tool_die("%s %s: expected [tokens] or [batch, tokens]", options->ids,
                 npy_shape_text(ids.dims, ids.shape, shape));
    if (table.dims != 2 || table.shape[1] == 0)
        tool_die("%s %s: expected [rows, width]", table.path, npy_shape_text(table.dims, table.shape, shape));
    struct tokens x = {.array = table, .batch = ids.dims == 2 ? ids.shape[0] : 1,
                       .tokens = ids.shape[ids.dims - 1], .width = table.shape[1], .has_batch = ids.dims == 2};
    float *rows = tool_allocate(tool_product(ids.count, x.width, options->ids), sizeof(float), options->ids);
    const rapt_index_list list = list_of(&ids);
    if (rapt_embedding(list, ids.count, table.data, table.shape[0], x.width, rows, &message) != RAPT_OK)
        tool_die("%s: %s", options->ids, message.text);
    x.data = rows;
    read_projections(&job, &layer, &x, &x, &x, 1);
    job_attend(&job, 1, &x, &x);
    add_extras(&job, &layer, &x, &x, &x, true);
    run(&job, &layer, &x, layer.value.out);
}

static rapt_norm read_norm(const struct layer_job *job, const char *gamma, const char *beta, int64_t width) {
    const struct option_number epsilon = job->options->epsilon;
    return (rapt_norm){job_vector(job, gamma, width), job_vector(job, beta, width),
                       epsilon.given ? epsilon.value : 1e-5f};
}

void layer_encoder(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens x = job_tokens(options->input);
    rapt_multi_head_desc inner = layer_of(&job);
    rapt_encoder_desc layer = RAPT_ENCODER_DESC_INIT;
    rapt_message message;
    const int activation = option_one_of("activation", options->activation, "relu gelu gelu-tanh");
    const bool fused = weights_has(&job.weights, "w_qkv");
    option_needs("fused-order", options->fused_order, fused, "w_qkv among the weights");
    if (fused)
        read_fused(&job, &inner, &x, options->heads.value);
    else
        read_projections(&job, &inner, &x, &x, &x, options->heads.value);
    const int64_t width = read_output(&job, &inner, true);
    if (width != x.width)
        tool_die("w_o gives %lld numbers, but %s has %lld per token", (long long)width, options->input,
                 (long long)x.width);
    job_attend(&job, options->heads.value, &x, &x);
    add_extras(&job, &inner, &x, &x, &x, false);
    inner.out = job_extra(&job, "attended", &x, width);
    layer.norm1_out = job_extra(&job, "norm1", &x, width);
    layer.ff_out = job_extra(&job, "feed_forward", &x, width);
    layer.attention = &inner;
    layer.norm1 = read_norm(&job, "ln1_gamma", "ln1_beta", width);
    layer.norm2 = read_norm(&job, "ln2_gamma", "ln2_beta", width);
    layer.ff1 = job_linear(&job, "ff1", width, &x.array);
    const struct npy_array hidden = {.path = "what w_ff1 gives", .dims = 1, .shape = {layer.ff1.out}};
    layer.ff2 = job_linear(&job, "ff2", layer.ff1.out, &hidden);
    layer.activation = activation < 0 ? RAPT_RELU : activation;
    layer.pre_norm = options->pre_norm;
    layer.x = x.data;
    layer.out = job_result(&job, options->out, &x, x.width);
    job_finish(&job, rapt_encoder_block(&layer, &job.run, &message), &message);
}
