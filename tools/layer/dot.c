/* SPDX-License-Identifier: MIT
 * Kinds without weights: simplified and dot. */
#include <string.h>

#include "attend/broadcast.h"
#include "common/tool.h"
#include "layer/job.h"
#include "layer/kinds.h"

void layer_simplified(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens x = job_tokens(options->input);
    job_attend(&job, 1, &x, &x);
    job_weights(&job, &x, true);
    rapt_dot_product_desc layer = RAPT_DOT_PRODUCT_DESC_INIT;
    rapt_message message;
    layer.isa = job.how.isa;
    layer.features = RAPT_SCALE;
    layer.scale = 1;
    layer.leading = 1;
    layer.shape = &x.batch;
    layer.query_length = layer.kv_length = x.tokens;
    layer.head_dim = x.width;
    layer.query = layer.key = layer.value = x.data;
    layer.weights = job.how.weights.data;
    layer.scores = job_extra_scores(&job, "scores", &x, true);
    layer.out = job_result(&job, options->out, &x, x.width);
    job_finish(&job, rapt_dot_product_attention(&layer, &job.run, &message), &message);
}

static struct npy_array read_operand(const char *path, const struct npy_array *query) {
    struct npy_array array = npy_read_floats(path);
    char has[NPY_SHAPE_TEXT], wants[NPY_SHAPE_TEXT];
    bool fits = array.dims >= 2 && (!query || array.dims == query->dims);
    for (int i = 0; query && fits && i < array.dims - 2; i++) fits = array.shape[i] == query->shape[i];
    if (!fits && !query)
        tool_die("%s %s: expected [..., tokens, dim]", path, npy_shape_text(array.dims, array.shape, has));
    if (!fits)
        tool_die("%s %s does not fit %s %s: other leading dimensions", path,
                 npy_shape_text(array.dims, array.shape, has), query->path,
                 npy_shape_text(query->dims, query->shape, wants));
    return array;
}

static void same(const struct npy_array *a, const struct npy_array *b, int from_end, const char *what) {
    char shape_a[NPY_SHAPE_TEXT], shape_b[NPY_SHAPE_TEXT];
    const long long of_a = a->shape[a->dims - from_end], of_b = b->shape[b->dims - from_end];
    if (of_a != of_b)
        tool_die("%s %s does not fit %s %s: %lld and %lld %s", a->path, npy_shape_text(a->dims, a->shape, shape_a),
                 b->path, npy_shape_text(b->dims, b->shape, shape_b), of_a, of_b, what);
}

/* As the library does, with the file's name and shape. */
static void check_mask(const rapt_dot_product_desc *layer, const struct npy_array *mask, const int64_t *mask_shape) {
    const int dims = layer->leading + 2;
    int64_t scores[NPY_MAX_DIMS];
    memcpy(scores, layer->shape, (size_t)layer->leading * sizeof scores[0]);
    scores[dims - 2] = layer->query_length;
    scores[dims - 1] = layer->kv_length;
    broadcast_check(mask, mask_shape, dims, scores, "");
}

/* Sizes of the mask from the right; missing ones are 1. A single number for all keys is expanded. */
static void set_mask(rapt_dot_product_desc *layer, const char *path, int64_t mask_shape[NPY_MAX_DIMS]) {
    struct npy_array mask = npy_read(path, NPY_BOOL | NPY_INT32);
    const int dims = layer->leading + 2;
    char shape[NPY_SHAPE_TEXT];
    if (mask.dims > dims)
        tool_die("%s %s does not fit scores of %d dimensions", path, npy_shape_text(mask.dims, mask.shape, shape),
                 dims);
    for (int i = 0; i < dims; i++) mask_shape[i] = i < dims - mask.dims ? 1 : mask.shape[i - (dims - mask.dims)];
    check_mask(layer, &mask, mask_shape);
    const int64_t each = mask_shape[dims - 1] == 1 ? layer->kv_length : 1;
    const int64_t count = tool_product(mask.count, each, path);
    unsigned char *bytes = tool_allocate(count, 1, path);
    for (int64_t i = 0; i < count; i++)
        bytes[i] = mask.type == NPY_BOOL ? ((const unsigned char *)mask.data)[i / each]
                                         : ((const int32_t *)mask.data)[i / each] != 0;
    mask_shape[dims - 1] *= each;
    layer->mask = bytes;
    layer->mask_shape = mask_shape;
}

static struct npy_array result_like(const struct npy_array *query, const char *path, int64_t width) {
    int64_t shape[NPY_MAX_DIMS];
    memcpy(shape, query->shape, sizeof shape);
    shape[query->dims - 1] = width;
    return npy_new(path, NPY_FLOAT32, query->dims, shape);
}

/* Like `rapt attend`. */
static int32_t origin_of(const rapt_dot_product_desc *layer, const struct layer_options *options) {
    const int64_t difference = layer->kv_length - layer->query_length;
    if (!options->query_offset.given || options->query_offset.value == difference) return RAPT_ORIGIN_BOTTOM_RIGHT;
    if (options->query_offset.value == 0) return RAPT_ORIGIN_TOP_LEFT;
    tool_die("--query-offset: %lld: layer dot has 0 and keys - queries, here %lld",
             (long long)options->query_offset.value, (long long)difference);
}

void layer_dot(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct npy_array query = read_operand(options->query, NULL), key = read_operand(options->key, &query);
    struct npy_array value = read_operand(options->value, &query);
    rapt_dot_product_desc layer = RAPT_DOT_PRODUCT_DESC_INIT;
    int64_t mask_shape[NPY_MAX_DIMS];
    rapt_message message;
    same(&key, &query, 1, "elements");
    same(&value, &key, 2, "tokens");
    const int n = layer.leading = query.dims - 2;
    layer.isa = job.how.isa;
    layer.shape = query.shape;
    layer.query_length = query.shape[n];
    layer.kv_length = key.shape[n];
    layer.head_dim = query.shape[n + 1];
    layer.value_dim = value.shape[n + 1];
    layer.query = query.data;
    layer.key = key.data;
    layer.value = value.data;
    layer.scale = options->unscaled;
    layer.mask_fill = options->mask_fill.value;
    layer.features = (options->unscaled ? RAPT_SCALE : 0u) | (options->causal ? RAPT_CAUSAL : 0u) |
                     (options->mask_fill.given ? RAPT_MASK_FILL : 0u);
    if (options->causal) layer.query_origin = origin_of(&layer, options);
    if (options->mask) set_mask(&layer, options->mask, mask_shape);
    if (layer.value_dim == 0) tool_die("%s: its tokens have no numbers", options->value);
    job.results[0] = result_like(&query, options->out, layer.value_dim);
    layer.out = job.results[0].data;
    job.result_count = 1;
    int64_t scores[NPY_MAX_DIMS];
    memcpy(scores, query.shape, sizeof scores);
    scores[n + 1] = layer.kv_length;
    layer.scores = job_extra_shaped(&job, "scores", query.dims, scores);
    layer.weights = job_attention(&job, query.dims, scores);
    job_finish(&job, rapt_dot_product_attention(&layer, &job.run, &message), &message);
}
