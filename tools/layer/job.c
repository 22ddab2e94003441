/* SPDX-License-Identifier: MIT */
#include "layer/job.h"

#include <stdio.h>
#include <string.h>

#include "attend/broadcast.h"
#include "attend/dropout.h"
#include "common/text.h"
#include "common/tool.h"
#include "files/output.h"

struct layer_job job_begin(const struct layer_options *options) {
    struct layer_job job = {.options = options, .how = RAPT_ATTENTION_DESC_INIT, .run = RAPT_RUN_OPTIONS_INIT};
    const char *paths[] = {options->out, options->attention_out, options->attentional_out};
    if (options->all_outputs) output_make_folder(options->all_outputs);
    for (int i = 0; i < 3; i++) {
        if (paths[i]) output_claim_array(paths[i]);
    }
    output_check_report(!options->quiet);
    job.how.isa = option_isa(options->isa);
    job.run.max_threads = (int32_t)options->threads.value;
    option_one_of("weights-layout", options->weights_layout, "out-in in-out");
    if (options->weights) job.weights = weights_open(options->weights, options->prefix);
    return job;
}

static void misfit(const struct npy_array *a, const struct npy_array *b, int64_t of_a, int64_t of_b,
                   const char *what) {
    char shape_a[NPY_SHAPE_TEXT], shape_b[NPY_SHAPE_TEXT];
    tool_die("%s %s does not fit %s %s: %lld and %lld %s", a->path, npy_shape_text(a->dims, a->shape, shape_a),
             b->path, npy_shape_text(b->dims, b->shape, shape_b), (long long)of_a, (long long)of_b, what);
}

struct tokens job_tokens(const char *path) {
    struct tokens tokens = {.array = npy_read_floats(path), .batch = 1};
    const struct npy_array *array = &tokens.array;
    char shape[NPY_SHAPE_TEXT];
    if (array->dims != 2 && array->dims != 3)
        tool_die("%s %s: expected [tokens, width] or [batch, tokens, width]", path,
                 npy_shape_text(array->dims, array->shape, shape));
    tokens.has_batch = array->dims == 3;
    if (tokens.has_batch) tokens.batch = array->shape[0];
    tokens.tokens = array->shape[array->dims - 2];
    tokens.width = array->shape[array->dims - 1];
    tokens.data = array->data;
    if (tokens.width == 0) tool_die("%s: its tokens have no numbers", path);
    return tokens;
}

void job_same_batch(const struct tokens *a, const struct tokens *b) {
    if (a->has_batch != b->has_batch) misfit(&b->array, &a->array, b->array.dims, a->array.dims, "dimensions");
    if (a->batch != b->batch) misfit(&b->array, &a->array, b->batch, a->batch, "sequences");
}

rapt_linear job_linear_named(const struct layer_job *job, const char *weight, const char *bias, int64_t in,
                             const struct npy_array *reader) {
    struct npy_array array = weights_read(&job->weights, weight);
    char shape[NPY_SHAPE_TEXT];
    if (array.dims != 2 || array.shape[0] == 0 || array.shape[1] == 0)
        tool_die("%s %s: expected a matrix", array.path, npy_shape_text(array.dims, array.shape, shape));
    const bool in_out = option_one_of("weights-layout", job->options->weights_layout, "out-in in-out") == 1;
    rapt_linear linear = in_out ? rapt_linear_in_out(array.data, NULL, array.shape[0], array.shape[1])
                                : rapt_linear_of(array.data, NULL, array.shape[1], array.shape[0]);
    if (in && linear.in != in) misfit(&array, reader, linear.in, in, "numbers per token");
    if (bias && weights_has(&job->weights, bias)) linear.bias = job_vector(job, bias, linear.out);
    return linear;
}

rapt_linear job_linear(const struct layer_job *job, const char *name, int64_t in, const struct npy_array *reader) {
    char weight[32], bias[32];
    snprintf(weight, sizeof weight, "w_%s", name);
    snprintf(bias, sizeof bias, "b_%s", name);
    return job_linear_named(job, weight, bias, in, reader);
}

const float *job_vector(const struct layer_job *job, const char *name, int64_t count) {
    struct npy_array array = weights_read(&job->weights, name);
    char shape[NPY_SHAPE_TEXT];
    if (array.dims != 1 || array.count != count)
        tool_die("%s %s: expected a vector of %lld", array.path, npy_shape_text(array.dims, array.shape, shape),
                 (long long)count);
    return array.data;
}

/* Three dimensions are of sequences, not of heads. */
static struct npy_array for_all_heads(struct npy_array array, const rapt_attention_desc *how) {
    const int64_t scores[3] = {how->batch, how->query_length, how->kv_length};
    broadcast_check(&array, array.shape, 3, scores, " [batch, queries, keys]");
    array.dims = 4;
    array.shape[3] = array.shape[2];
    array.shape[2] = array.shape[1];
    array.shape[1] = 1;
    return array;
}

/* bool or int32, [queries, keys], [batch, queries, keys] or [batch, heads, queries, keys]. */
static rapt_tensor read_pairs(const char *path, const rapt_attention_desc *how) {
    struct npy_array array = npy_read(path, NPY_BOOL | NPY_INT32);
    if (array.type == NPY_INT32) {
        const int32_t *numbers = array.data;
        unsigned char *bytes = tool_allocate(array.count, 1, path);
        for (int64_t i = 0; i < array.count; i++) bytes[i] = numbers[i] != 0;
        array.data = bytes;
        array.type = NPY_BOOL;
    }
    return broadcast_to_scores(array.dims == 3 ? for_all_heads(array, how) : array, how);
}

static void drop(struct layer_job *job) {
    const struct layer_options *options = job->options;
    rapt_attention_desc *how = &job->how;
    if (!options->drop.given) {
        if (options->keep || options->seed.given)
            tool_die("--%s changes nothing without --drop", options->keep ? "keep" : "seed");
        return;
    }
    const double p = (double)options->drop.value;
    dropout_check(options->drop);
    if (options->keep && options->seed.given) tool_die("--seed changes nothing with --keep");
    how->keep_scale = (float)(1 / (1 - p));
    if (options->keep) {
        how->keep_mask = read_pairs(options->keep, how);
        return;
    }
    how->keep_mask = dropout_draw(p, (uint64_t)options->seed.value, how);
}

/* Like `rapt attend`. */
static void align(rapt_attention_desc *how, const struct layer_options *options) {
    how->features |= RAPT_CAUSAL;
    how->query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    if (!options->query_offset.given) return;
    int64_t *positions = tool_allocate(how->batch, sizeof *positions, "--query-offset");
    for (int64_t b = 0; b < how->batch; b++) positions[b] = options->query_offset.value;
    how->query_origin = RAPT_ORIGIN_GIVEN;
    how->query_position = rapt_int64_list(positions, how->batch);
}

void job_attend(struct layer_job *job, int64_t heads, const struct tokens *queries, const struct tokens *keys) {
    const struct layer_options *options = job->options;
    rapt_attention_desc *how = &job->how;
    how->batch = queries->batch;
    how->query_heads = how->kv_heads = heads;
    how->query_length = queries->tokens;
    how->kv_length = keys->tokens;
    if (options->causal) align(how, options);
    if (options->mask) how->mask = read_pairs(options->mask, how);
    if (options->mask_fill.given) {
        how->features |= RAPT_MASK_FILL;
        how->mask_fill = options->mask_fill.value;
    }
    drop(job);
}

static float *add_result(struct layer_job *job, const char *path, int dims, const int64_t *shape) {
    struct npy_array *array = &job->results[job->result_count++];
    *array = npy_new(path, NPY_FLOAT32, dims, shape);
    return array->data;
}

float *job_result(struct layer_job *job, const char *path, const struct tokens *queries, int64_t width) {
    const int64_t shape[3] = {queries->batch, queries->tokens, width};
    return add_result(job, path, queries->has_batch ? 3 : 2, shape + !queries->has_batch);
}

/* [batch, heads, queries, keys] less what queries or the kind lack; returns the dimensions. */
static int shape_scores(const struct layer_job *job, const struct tokens *queries, bool one_head, int64_t shape[4]) {
    const rapt_attention_desc *how = &job->how;
    const int64_t all[4] = {how->batch, how->query_heads, how->query_length, how->kv_length};
    int dims = 0;
    for (int i = 0; i < 4; i++) {
        if ((i == 0 && !queries->has_batch) || (i == 1 && one_head)) continue;
        shape[dims++] = all[i];
    }
    return dims;
}

/* The claimed name of an output in the folder of --all-outputs; NULL without that. */
static const char *extra_path(const struct layer_job *job, const char *name) {
    const char *folder = job->options->all_outputs;
    if (!folder) return NULL;
    const size_t bytes = strlen(folder) + strlen(name) + sizeof "/.npy";
    char *path = tool_allocate((int64_t)bytes, 1, "a name");
    snprintf(path, bytes, "%s/%s.npy", folder, name);
    tool_name_file(path, tool_option_of(folder));
    output_claim_array(path);
    return path;
}

float *job_extra_shaped(struct layer_job *job, const char *name, int dims, const int64_t *shape) {
    const char *path = extra_path(job, name);
    return path ? add_result(job, path, dims, shape) : NULL;
}

float *job_extra(struct layer_job *job, const char *name, const struct tokens *queries, int64_t width) {
    const int64_t shape[3] = {queries->batch, queries->tokens, width};
    return job_extra_shaped(job, name, queries->has_batch ? 3 : 2, shape + !queries->has_batch);
}

float *job_extra_scores(struct layer_job *job, const char *name, const struct tokens *queries, bool one_head) {
    int64_t shape[4];
    return job_extra_shaped(job, name, shape_scores(job, queries, one_head, shape), shape);
}

float *job_attention(struct layer_job *job, int dims, const int64_t *shape) {
    const char *path = job->options->attention_out;
    if (!path) return job_extra_shaped(job, "attention", dims, shape);
    float *weights = add_result(job, path, dims, shape);
    const char *also = extra_path(job, "attention");
    if (!also) return weights;
    struct npy_array *same = &job->results[job->result_count++];
    *same = same[-1];
    same->path = also;
    return weights;
}

void job_weights(struct layer_job *job, const struct tokens *queries, bool one_head) {
    rapt_attention_desc *how = &job->how;
    int64_t shape[4];
    const int dims = shape_scores(job, queries, one_head, shape);
    float *weights = job_attention(job, dims, shape);
    if (!weights) return;
    how->weights = rapt_output_bhsd(weights, how->batch, how->query_heads, how->query_length, how->kv_length);
    how->weights_kind = RAPT_WEIGHTS_SOFTMAX;
}

void job_finish(struct layer_job *job, rapt_status status, const rapt_message *message) {
    char shape[NPY_SHAPE_TEXT];
    if (status != RAPT_OK)
        tool_die("%s%s%s", rapt_status_text(status), message->text[0] ? ": " : "", message->text);
    for (int i = 0; i < job->result_count; i++) output_stage(&job->results[i]);
    for (int i = 0; i < job->result_count && !job->options->quiet; i++)
        printf("%s %s\n", text_shown(job->results[i].path),
               npy_shape_text(job->results[i].dims, job->results[i].shape, shape));
    /* Naming the results is the last step that can fail. */
    tool_flush();
    output_commit();
}
