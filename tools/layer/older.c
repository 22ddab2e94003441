/* SPDX-License-Identifier: MIT
 * Kinds additive and luong. */
#include <stdio.h>

#include "common/tool.h"
#include "layer/job.h"
#include "layer/kinds.h"

void layer_additive(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens state = job_tokens(options->input), memory = job_tokens(options->memory);
    rapt_additive_desc layer = RAPT_ADDITIVE_DESC_INIT;
    rapt_message message;
    job_same_batch(&state, &memory);
    layer.w = job_linear_named(&job, "w_a", NULL, state.width, &state.array);
    layer.u = job_linear_named(&job, "u_a", NULL, memory.width, &memory.array);
    if (layer.u.out != layer.w.out)
        tool_die("u_a gives %lld numbers, w_a %lld: they are added", (long long)layer.u.out, (long long)layer.w.out);
    layer.v = job_vector(&job, "v_a", layer.w.out);
    job_attend(&job, 1, &state, &memory);
    job_weights(&job, &state, true);
    layer.attention = &job.how;
    layer.state = state.data;
    layer.memory = memory.data;
    layer.scores = job_extra_scores(&job, "scores", &state, true);
    layer.out = job_result(&job, options->out, &state, memory.width);
    job_finish(&job, rapt_additive_attention(&layer, &job.run, &message), &message);
}

/* w_a with rows and columns as given; rows = 0: any. */
static struct npy_array read_matrix(const struct layer_job *job, int64_t rows, int64_t columns) {
    struct npy_array array = weights_read(&job->weights, "w_a");
    char shape[NPY_SHAPE_TEXT], expected[32] = "units";
    if (rows) snprintf(expected, sizeof expected, "%lld", (long long)rows);
    if (array.dims != 2 || array.count == 0 || (rows && array.shape[0] != rows) || array.shape[1] != columns)
        tool_die("%s %s: expected [%s, %lld]", array.path, npy_shape_text(array.dims, array.shape, shape), expected,
                 (long long)columns);
    return array;
}

static void read_weights(struct layer_job *job, rapt_luong_desc *layer, const struct tokens *state,
                         const struct tokens *memory) {
    const int64_t d = state->width, e = memory->width;
    const bool reads_weights = layer->score != RAPT_LUONG_DOT || layer->window == RAPT_LUONG_LOCAL_P ||
                               job->options->attentional_out;
    if (reads_weights && !job->options->weights)
        tool_die("layer luong: --weights is required with these options (see `rapt help layer luong`)");
    option_needs("weights", job->options->weights, reads_weights, "--score general or concat, --locality local-p or "
                 "--attentional-out");
    if (layer->score == RAPT_LUONG_DOT && d != e)
        tool_die("%s and %s: %lld and %lld numbers per token, --score dot requires equal ones", job->options->input,
                 job->options->memory, (long long)d, (long long)e);
    if (layer->score == RAPT_LUONG_GENERAL) layer->w_a = read_matrix(job, d, e).data;
    if (layer->score == RAPT_LUONG_CONCAT) {
        struct npy_array both = read_matrix(job, 0, d + e);
        layer->w_a = both.data;
        layer->units = both.shape[0];
        layer->v_a = job_vector(job, "v_a", layer->units);
    }
    if (layer->window == RAPT_LUONG_LOCAL_P) {
        layer->w_p = job_linear_named(job, "w_p", NULL, d, &state->array);
        layer->v_p = job_vector(job, "v_p", layer->w_p.out);
    }
    if (job->options->attentional_out) {
        const struct npy_array both = {.path = "context and state", .dims = 1, .shape = {e + d}};
        layer->w_c = job_linear_named(job, "w_c", "b_c", e + d, &both);
        layer->attentional = job_result(job, job->options->attentional_out, state, layer->w_c.out);
    }
}

/* Only local-p computes these: the softmax before its Gaussian, and that one's position. */
static void add_local_results(struct layer_job *job, rapt_luong_desc *layer, const struct tokens *state) {
    const int64_t shape[2] = {state->batch, state->tokens};
    layer->align = job_extra_scores(job, "alignment", state, true);
    layer->position = job_extra_shaped(job, "position", 1 + state->has_batch, shape + !state->has_batch);
}

void layer_luong(const struct layer_options *options) {
    struct layer_job job = job_begin(options);
    struct tokens state = job_tokens(options->input), memory = job_tokens(options->memory);
    rapt_luong_desc layer = RAPT_LUONG_DESC_INIT;
    rapt_message message;
    const int score = option_one_of("score", options->score, "dot general concat");
    const int window = option_one_of("locality", options->locality, "global local-m local-p");
    layer.score = score < 0 ? RAPT_LUONG_DOT : score;
    layer.window = window < 0 ? RAPT_LUONG_GLOBAL : window;
    layer.reach = options->reach.value;
    if (layer.window != RAPT_LUONG_GLOBAL && !options->reach.given)
        tool_die("--locality %s: --reach is required", options->locality);
    option_needs("reach", options->reach.given, layer.window != RAPT_LUONG_GLOBAL, "--locality local-m or local-p");
    job_same_batch(&state, &memory);
    read_weights(&job, &layer, &state, &memory);
    job_attend(&job, 1, &state, &memory);
    job_weights(&job, &state, true);
    layer.attention = &job.how;
    layer.state = state.data;
    layer.memory = memory.data;
    layer.scores = job_extra_scores(&job, "scores", &state, true);
    if (layer.window == RAPT_LUONG_LOCAL_P) add_local_results(&job, &layer, &state);
    layer.state_width = state.width;
    layer.memory_width = memory.width;
    layer.out = job_result(&job, options->out, &state, memory.width);
    job_finish(&job, rapt_luong_attention(&layer, &job.run, &message), &message);
}
