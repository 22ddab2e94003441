/* SPDX-License-Identifier: MIT
 * Kind minilm: all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2), from token ids to
 * sentence embeddings. Sums word, position and type embeddings and normalises; six post-norm blocks with GELU; the mean
 * over real tokens, scaled to length 1. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attend/broadcast.h"
#include "common/tool.h"
#include "layer/job.h"
#include "layer/kinds.h"

enum { LAYERS = 6, HEADS = 12 };
static const float EPSILON = 1e-12f;

struct sentences {
    struct npy_array ids;
    rapt_index_list lengths; /* absent: all tokens are real */
    int64_t batch, tokens, width;
};

/* width: 0 = any */
static struct npy_array read_table(const struct layer_job *job, const char *name, int64_t width) {
    struct npy_array table = weights_read(&job->weights, name);
    char shape[NPY_SHAPE_TEXT];
    if (!width && (table.dims != 2 || table.count == 0))
        tool_die("%s %s: expected [rows, width]", table.path, npy_shape_text(table.dims, table.shape, shape));
    if (table.dims != 2 || table.count == 0 || (width && table.shape[1] != width))
        tool_die("%s %s: expected [rows, %lld]", table.path, npy_shape_text(table.dims, table.shape, shape),
                 (long long)width);
    return table;
}

static rapt_norm read_norm(const struct layer_job *job, const char *place, int64_t width) {
    char gamma[96], beta[96];
    snprintf(gamma, sizeof gamma, "%s.LayerNorm.weight", place);
    snprintf(beta, sizeof beta, "%s.LayerNorm.bias", place);
    return (rapt_norm){job_vector(job, gamma, width), job_vector(job, beta, width), EPSILON};
}

static rapt_linear read_linear(const struct layer_job *job, int layer, const char *place, int64_t in) {
    const struct npy_array before = {.path = "the layer before it", .dims = 1, .shape = {in}};
    char weight[96], bias[96];
    snprintf(weight, sizeof weight, "encoder.layer.%d.%s.weight", layer, place);
    snprintf(bias, sizeof bias, "encoder.layer.%d.%s.bias", layer, place);
    return job_linear_named(job, weight, bias, in, &before);
}

static int64_t length_of(const struct sentences *s, int64_t b) {
    if (!s->lengths.data) return s->tokens;
    return s->lengths.index_bytes == 4 ? ((const int32_t *)s->lengths.data)[b]
                                       : ((const int64_t *)s->lengths.data)[b];
}

static void check_length(const char *path, const struct sentences *s, int64_t b) {
    const int64_t length = length_of(s, b);
    if (length < 1 || length > s->tokens)
        tool_die("%s: lengths[%lld] = %lld is outside 1 ... %lld", path, (long long)b, (long long)length,
                 (long long)s->tokens);
}

static struct sentences read_sentences(struct layer_job *job) {
    const struct layer_options *options = job->options;
    struct sentences s = {.ids = npy_read(options->ids, NPY_INT32 | NPY_INT64), .batch = 1};
    char shape[NPY_SHAPE_TEXT];
    if (s.ids.dims != 1 && s.ids.dims != 2)
        tool_die("%s %s: expected [tokens] or [batch, tokens]", options->ids,
                 npy_shape_text(s.ids.dims, s.ids.shape, shape));
    if (s.ids.dims == 2) s.batch = s.ids.shape[0];
    s.tokens = s.ids.shape[s.ids.dims - 1];
    if (s.tokens == 0) tool_die("%s: a sentence of no tokens", options->ids);
    if (!options->lengths) return s;
    struct npy_array lengths = npy_read(options->lengths, NPY_INT32 | NPY_INT64);
    if (lengths.dims != 1 || lengths.count != s.batch)
        tool_die("%s %s: expected one number for each of %lld sequences", options->lengths,
                 npy_shape_text(lengths.dims, lengths.shape, shape), (long long)s.batch);
    s.lengths = list_of(&lengths);
    for (int64_t b = 0; b < s.batch; b++) check_length(options->lengths, &s, b);
    return s;
}

/* Word + type 0 + position, normalised. */
static float *embed(const struct layer_job *job, struct sentences *s) {
    struct npy_array words = read_table(job, "embeddings.word_embeddings.weight", 0);
    s->width = words.shape[1];
    struct npy_array places = read_table(job, "embeddings.position_embeddings.weight", s->width);
    struct npy_array types = read_table(job, "embeddings.token_type_embeddings.weight", s->width);
    const rapt_norm norm = read_norm(job, "embeddings", s->width);
    const int64_t count = tool_product(s->ids.count, s->width, job->options->ids);
    float *x = tool_allocate(count, sizeof *x, job->options->ids);
    rapt_message message;
    if (s->tokens > places.shape[0])
        tool_die("%s: %lld tokens, but the model has %lld positions", job->options->ids, (long long)s->tokens,
                 (long long)places.shape[0]);
    const rapt_index_list ids = list_of(&s->ids);
    if (rapt_embedding(ids, s->ids.count, words.data, words.shape[0], s->width, x, &message) != RAPT_OK)
        tool_die("%s: %s", job->options->ids, message.text);
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = i / s->width % s->tokens, d = i % s->width;
        x[i] = x[i] + ((const float *)types.data)[d] + ((const float *)places.data)[place * s->width + d];
    }
    if (rapt_layer_norm(&norm, x, s->ids.count, s->width, x, &message) != RAPT_OK) tool_die("%s", message.text);
    return x;
}

static void run_layer(struct layer_job *job, const struct sentences *s, int layer, float *x) {
    rapt_multi_head_desc inner = RAPT_MULTI_HEAD_DESC_INIT;
    rapt_encoder_desc block = RAPT_ENCODER_DESC_INIT;
    rapt_message message;
    char place[64];
    inner.attention = &job->how;
    inner.query = read_linear(job, layer, "attention.self.query", s->width);
    inner.key = read_linear(job, layer, "attention.self.key", s->width);
    inner.value = read_linear(job, layer, "attention.self.value", s->width);
    inner.output = read_linear(job, layer, "attention.output.dense", inner.value.out);
    block.attention = &inner;
    block.ff1 = read_linear(job, layer, "intermediate.dense", s->width);
    block.ff2 = read_linear(job, layer, "output.dense", block.ff1.out);
    snprintf(place, sizeof place, "encoder.layer.%d.attention.output", layer);
    block.norm1 = read_norm(job, place, s->width);
    snprintf(place, sizeof place, "encoder.layer.%d.output", layer);
    block.norm2 = read_norm(job, place, s->width);
    block.activation = RAPT_GELU;
    block.x = block.out = x;
    const rapt_status status = rapt_encoder_block(&block, &job->run, &message);
    if (status != RAPT_OK) tool_die("layer %d: %s: %s", layer, rapt_status_text(status), message.text);
}

/* The mean over the real tokens, scaled to length 1. */
static void pool(const float *x, int64_t tokens, int64_t width, float *out) {
    double square = 0;
    for (int64_t d = 0; d < width; d++) {
        double sum = 0;
        for (int64_t t = 0; t < tokens; t++) sum += (double)x[t * width + d];
        out[d] = (float)(sum / (double)tokens);
        square += (double)out[d] * (double)out[d];
    }
    const double length = fmax(sqrt(square), 1e-12);
    for (int64_t d = 0; d < width; d++) out[d] = (float)((double)out[d] / length);
}

void layer_minilm(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct sentences s = read_sentences(&job);
    float *x = embed(&job, &s);
    job.how.batch = s.batch;
    job.how.query_heads = job.how.kv_heads = HEADS;
    job.how.query_length = job.how.kv_length = s.tokens;
    job.how.kv_lengths = s.lengths;
    for (int layer = 0; layer < LAYERS; layer++) run_layer(&job, &s, layer, x);
    const struct tokens one = {.batch = 1, .tokens = s.batch, .has_batch = false};
    float *out = job_result(&job, options->out, &one, s.width);
    for (int64_t b = 0; b < s.batch; b++)
        pool(x + b * s.tokens * s.width, length_of(&s, b), s.width, out + b * s.width);
    job_finish(&job, RAPT_OK, NULL);
}
