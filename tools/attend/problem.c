/* SPDX-License-Identifier: MIT */
#include "attend/problem.h"

#include <stdbool.h>
#include <string.h>

#include "attend/broadcast.h"
#include "attend/dropout.h"
#include "attend/kv_type.h"
#include "attend/pages.h"
#include "attend/selection.h"
#include "common/tool.h"

struct axes {
    int64_t batch, heads, tokens, dim;
};

static struct axes axes_of(const struct npy_array *array, bool bshd) {
    int64_t full[4] = {1, 1, 1, 1};
    /* [S, D] has one head, wherever the layout puts it. */
    int first = 4 - array->dims;
    for (int i = 0; i < array->dims; i++) full[first + i] = array->shape[i];
    if (bshd && array->dims > 2) return (struct axes){full[0], full[2], full[1], full[3]};
    return (struct axes){full[0], full[1], full[2], full[3]};
}

static rapt_tensor tensor_of(const struct npy_array *array, struct axes axes, bool bshd) {
    const int32_t dtype = dtype_of(array);
    return bshd ? rapt_tensor_bshd(array->data, dtype, axes.batch, axes.tokens, axes.heads, axes.dim)
                : rapt_tensor_bhsd(array->data, dtype, axes.batch, axes.heads, axes.tokens, axes.dim);
}

static void fit(bool fits, const struct npy_array *a, const struct npy_array *b, const char *what,
                int64_t of_a, int64_t of_b) {
    char shape_a[NPY_SHAPE_TEXT], shape_b[NPY_SHAPE_TEXT];
    if (fits) return;
    tool_die("%s %s does not fit %s %s: %lld and %lld %s", a->path,
             npy_shape_text(a->dims, a->shape, shape_a), b->path, npy_shape_text(b->dims, b->shape, shape_b),
             (long long)of_a, (long long)of_b, what);
}

static struct npy_array read_tensor(const char *path) {
    struct npy_array array = npy_read(path, NPY_FLOATS);
    char shape[NPY_SHAPE_TEXT];
    if (array.dims < 2 || array.dims > 4) {
        tool_die("%s %s: expected 2, 3 or 4 dimensions", path,
                 npy_shape_text(array.dims, array.shape, shape));
    }
    return array;
}

static void check_fit(const struct npy_array *query, const struct npy_array *key,
                      const struct npy_array *value, bool bshd, bool paged) {
    char shape[NPY_SHAPE_TEXT];
    if (paged && key->dims != 4)
        tool_die("%s %s: expected 4 dimensions, with --pages [pages, heads, tokens of a page, dim]", key->path,
                 npy_shape_text(key->dims, key->shape, shape));
    fit(paged || key->dims == query->dims, key, query, "dimensions", key->dims, query->dims);
    fit(value->dims == key->dims, value, key, "dimensions", value->dims, key->dims);
    struct axes q = axes_of(query, bshd), k = axes_of(key, bshd), v = axes_of(value, bshd);
    fit(paged || k.batch == q.batch, key, query, "sequences", k.batch, q.batch);
    fit(v.batch == k.batch, value, key, paged ? "pages" : "sequences", v.batch, k.batch);
    fit(k.dim == q.dim, key, query, "elements per head", k.dim, q.dim);
    fit(v.heads == k.heads, value, key, "heads", v.heads, k.heads);
    fit(v.tokens == k.tokens, value, key, "tokens", v.tokens, k.tokens);
    fit(k.heads > 0 && q.heads % k.heads == 0, key, query, "heads (query heads are a multiple of key heads)",
        k.heads, q.heads);
    if (q.dim == 0) tool_die("%s: its heads have 0 elements", query->path);
    if (v.dim == 0) tool_die("%s: its heads have 0 elements", value->path);
}

static void load_tensors(struct problem *problem, const struct attend_options *options, bool bshd) {
    rapt_attention_desc *desc = &problem->desc;
    problem->query = read_tensor(options->query);
    problem->key = read_tensor(options->key);
    problem->value = read_tensor(options->value);
    check_fit(&problem->query, &problem->key, &problem->value, bshd, options->pages);
    struct axes q = axes_of(&problem->query, bshd), k = axes_of(&problem->key, bshd),
                v = axes_of(&problem->value, bshd);
    desc->batch = q.batch;
    desc->query_heads = q.heads;
    desc->kv_heads = k.heads;
    desc->query_length = q.tokens;
    desc->kv_length = k.tokens;
    desc->head_dim = q.dim;
    desc->value_dim = v.dim;
    desc->query = tensor_of(&problem->query, q, bshd);
    desc->key = tensor_of(&problem->key, k, bshd);
    desc->value = tensor_of(&problem->value, v, bshd);
    if (options->pages) pages_add(desc, options->pages, k.batch);
}

static void add_out(struct problem *problem, const struct attend_options *options, bool bshd) {
    static const enum npy_type types[] = {NPY_FLOAT32, NPY_FLOAT16, NPY_BFLOAT16};
    const int type = option_one_of("out-type", options->out_type, "f32 f16 bf16");
    int64_t shape[NPY_MAX_DIMS];
    memcpy(shape, problem->query.shape, sizeof shape);
    shape[problem->query.dims - 1] = problem->desc.value_dim;
    problem->out = npy_new(options->out, types[type < 0 ? 0 : type], problem->query.dims, shape);
    problem->desc.out = tensor_of(&problem->out, axes_of(&problem->out, bshd), bshd);
}

static void add_results(struct problem *problem, const struct attend_options *options) {
    rapt_attention_desc *desc = &problem->desc;
    const int64_t shape[4] = {desc->batch, desc->query_heads, desc->query_length, desc->kv_length};
    const int64_t *begin = shape + 4 - problem->query.dims;
    static const char *const kinds[] = {"raw", "softcap", "masked", "softmax"};
    if (options->lse) {
        problem->lse = npy_new(options->lse, NPY_FLOAT32, problem->query.dims - 1, begin);
        desc->lse = rapt_output_bhsd(problem->lse.data, desc->batch, desc->query_heads, desc->query_length, 1);
    }
    if (!options->attention_out && !options->tokens) return;
    problem->weights = npy_new(options->attention_out, NPY_FLOAT32, problem->query.dims, begin);
    desc->weights =
        rapt_output_bhsd(problem->weights.data, desc->batch, desc->query_heads, desc->query_length, desc->kv_length);
    desc->weights_kind = RAPT_WEIGHTS_SOFTMAX;
    for (int i = 0; options->attention_kind && i < 4; i++) {
        if (strcmp(options->attention_kind, kinds[i]) == 0) desc->weights_kind = RAPT_WEIGHTS_RAW + i;
    }
}

static void *load_head_vector(const char *path, int64_t heads) {
    struct npy_array array = npy_read_floats(path);
    char shape[NPY_SHAPE_TEXT];
    if (array.dims != 1 || array.shape[0] != heads) {
        tool_die("%s %s: expected one number for each of %lld query heads", path,
                 npy_shape_text(array.dims, array.shape, shape), (long long)heads);
    }
    return array.data;
}

static rapt_index_list load_list(const char *path, int64_t batch) {
    struct npy_array array = npy_read(path, NPY_INT32 | NPY_INT64);
    char shape[NPY_SHAPE_TEXT];
    if (array.dims != 1 || array.shape[0] != batch) {
        tool_die("%s %s: expected one number for each of %lld sequences", path,
                 npy_shape_text(array.dims, array.shape, shape), (long long)batch);
    }
    return list_of(&array);
}

static void add_scores(rapt_attention_desc *desc, const struct attend_options *options) {
    if (options->scale.given) desc->features |= RAPT_SCALE;
    desc->scale = options->scale.value;
    desc->softcap = options->softcap.value;
    if (options->mask) desc->mask = broadcast_to_scores(npy_read(options->mask, NPY_BOOL), desc);
    if (options->bias) desc->bias = broadcast_to_scores(npy_read(options->bias, NPY_FLOATS), desc);
    if (options->bias_factor) desc->bias_head_factor = load_head_vector(options->bias_factor, desc->query_heads);
    if (options->mask_fill.given) desc->features |= RAPT_MASK_FILL;
    desc->mask_fill = options->mask_fill.value;
    if (options->sinks) desc->sinks = load_head_vector(options->sinks, desc->query_heads);
    if (options->kv_lengths) desc->kv_lengths = load_list(options->kv_lengths, desc->batch);
    if (options->query_lengths) desc->query_lengths = load_list(options->query_lengths, desc->batch);
    if (options->pages) pages_check(desc, options->pages);
}

static void add_dropout(rapt_attention_desc *desc, const struct attend_options *options) {
    const double drop = (double)options->drop.value;
    if (!options->drop.given) return;
    desc->keep_scale = (float)(1 / (1 - drop));
    desc->keep_mask = options->keep ? broadcast_to_scores(npy_read(options->keep, NPY_BOOL), desc)
                                    : dropout_draw(drop, (uint64_t)options->seed.value, desc);
}

static void add_positions(rapt_attention_desc *desc, const struct attend_options *options) {
    if (options->causal) desc->features |= RAPT_CAUSAL;
    if (options->window.given) desc->features |= RAPT_WINDOW;
    desc->window_left = options->window.first;
    desc->window_right = options->window.second;
    if (options->alibi && strcmp(options->alibi, "auto") == 0)
        desc->features |= RAPT_ALIBI_STANDARD;
    else if (options->alibi)
        desc->alibi_slopes = load_head_vector(options->alibi, desc->query_heads);
    if (!options->causal && !options->window.given && !options->alibi) return;
    desc->query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    if (options->key_positions) desc->key_position = load_list(options->key_positions, desc->batch);
    if (options->query_positions) {
        desc->query_origin = RAPT_ORIGIN_GIVEN;
        desc->query_position = load_list(options->query_positions, desc->batch);
    }
    if (!options->query_offset.given) return;
    int64_t *positions = tool_allocate(desc->batch, sizeof *positions, "--query-offset");
    for (int64_t b = 0; b < desc->batch; b++) positions[b] = options->query_offset.value;
    desc->query_origin = RAPT_ORIGIN_GIVEN;
    desc->query_position = rapt_int64_list(positions, desc->batch);
}

struct problem problem_load(const struct attend_options *options) {
    struct problem problem = {.desc = RAPT_ATTENTION_DESC_INIT};
    static const int32_t orders[] = {RAPT_NUMERICS_ORDER_1, RAPT_NUMERICS_ORDER_2, RAPT_NUMERICS_ORDER_3,
                                     RAPT_NUMERICS_FASTEST};
    const int order = option_one_of("numerics", options->numerics, "1 2 3 fastest");
    if (order >= 0) problem.desc.numerics = orders[order];
    problem.desc.isa = option_isa(options->isa);
    bool bshd = options->layout && strcmp(options->layout, "bshd") == 0;
    load_tensors(&problem, options, bshd);
    add_out(&problem, options, bshd);
    add_scores(&problem.desc, options);
    add_dropout(&problem.desc, options);
    add_positions(&problem.desc, options);
    selection_add(&problem.desc, options);
    add_results(&problem, options);
    problem.stored = kv_type_stored(&problem.desc, options);
    return problem;
}
