/* SPDX-License-Identifier: MIT
 * Luong's attention: three scores, global or around a position. Scores dot and
 * general are the engine's own dot products; those of concat are computed here
 * and enter like additive ones. */
#include "layers/additive.h"
#include "layers/elementwise.h"
#include "layers/luong.h"

/* It attends twice, so what one pass of the engine leaves is no result. */
static void check_local_p(struct rapt_call *call, const rapt_luong_desc *desc, const rapt_attention_desc *all) {
    if (rapt_call_needs(call, desc->v_p, "v_p"))
        rapt_call_linear(call, "w_p", &desc->w_p, desc->state_width, "state has");
    const char *name = all->lse.data             ? "lse"
                       : all->initial_state.data ? "initial_state"
                       : all->final_state.data   ? "final_state"
                                                 : NULL;
    if (name)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "attention has %s: not with local-p", name);
    if (all->weights.data && all->weights_kind != RAPT_WEIGHTS_SOFTMAX)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG, "attention->weights_kind = %ld: local-p supports SOFTMAX only",
                         (long)all->weights_kind);
}

/* w_a as a layer; dot has none. ASSUME the widths are checked: their sum must not overflow. */
static rapt_linear layer_of_scores(const rapt_luong_desc *desc) {
    const int64_t d = desc->state_width, e = desc->memory_width;
    return desc->score == RAPT_LUONG_CONCAT ? rapt_linear_of(desc->w_a, NULL, d + e, desc->units)
                                            : rapt_linear_in_out(desc->w_a, NULL, d, e);
}

/* Before there is scratch memory for units: how many are too many must not depend on the machine's memory. */
static void check_w_a(struct rapt_call *call, const rapt_luong_desc *desc) {
    if (!rapt_call_needs(call, desc->w_a, "w_a"))
        return;
    const rapt_linear w_a = layer_of_scores(desc);
    if (desc->score == RAPT_LUONG_CONCAT && rapt_call_needs(call, desc->v_a, "v_a"))
        rapt_call_size(call, desc->units, 1, "units");
    rapt_call_linear(call, "w_a", &w_a, 0, "");
}

static void check(struct rapt_call *call, const rapt_luong_desc *desc, const rapt_attention_desc *all) {
    const int64_t d = desc->state_width, e = desc->memory_width;
    rapt_check_single(call, all);
    if (all->mask.data || all->features || all->key_position.data || all->query_position.data || all->query_origin)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "attention has features, a mask or positions: not in this layer");
    if (all->sinks || all->alibi_slopes || all->query_lengths.data)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "attention has sinks, slopes or query_lengths: not in this layer");
    if (desc->score < RAPT_LUONG_DOT || desc->score > RAPT_LUONG_CONCAT)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG, "score = %ld is unknown", (long)desc->score);
    if (desc->window < RAPT_LUONG_GLOBAL || desc->window > RAPT_LUONG_LOCAL_P)
        rapt_call_refuse(call, RAPT_UNSUPPORTED_FLAG, "window = %ld is unknown", (long)desc->window);
    if (desc->window != RAPT_LUONG_GLOBAL)
        rapt_call_size(call, desc->reach, 1, "reach");
    rapt_call_size(call, d, 1, "state_width");
    rapt_check_values(call, e, "memory_width");
    rapt_call_needs(call, desc->state, "state");
    rapt_call_needs(call, desc->memory, "memory");
    rapt_call_needs(call, desc->out, "out");
    if (desc->score == RAPT_LUONG_DOT && d != e)
        rapt_call_refuse(call, RAPT_INVALID_SHAPE, "state_width = %lld, memory_width = %lld: dot requires equal ones",
                         (long long)d, (long long)e);
    if (desc->score != RAPT_LUONG_DOT)
        check_w_a(call, desc);
    if (desc->window == RAPT_LUONG_LOCAL_P)
        check_local_p(call, desc, all);
    if (desc->w_c.weight && rapt_call_needs(call, desc->attentional, "attentional"))
        rapt_call_linear(call, "w_c", &desc->w_c, d + e, "context and state have");
    if (desc->window != RAPT_LUONG_LOCAL_P && (desc->align || desc->position))
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "align and position are results of local-p");
    rapt_call_aligned(call, desc->state, "state");
    rapt_call_aligned(call, desc->memory, "memory");
    rapt_call_aligned(call, desc->v_a, "v_a");
    rapt_call_aligned(call, desc->v_p, "v_p");
    rapt_call_aligned(call, desc->scores, "scores");
    rapt_call_aligned(call, desc->align, "align");
    rapt_call_aligned(call, desc->attentional, "attentional");
    rapt_call_aligned(call, desc->position, "position");
    if (desc->attentional && !desc->w_c.weight)
        rapt_call_refuse(call, RAPT_UNUSED_FIELD, "attentional without w_c");
}

/* w_a [h_t; h_s] is the sum of two projections: concatenated rows never exist. */
static void score_concat(struct rapt_call *call, const rapt_luong_desc *desc, const rapt_attention_desc *all,
                         float *scores) {
    const int64_t b = all->batch, tq = all->query_length, tk = all->kv_length, units = desc->units;
    const int64_t d = desc->state_width, e = desc->memory_width;
    const rapt_linear both = layer_of_scores(desc);
    float *of_state = rapt_call_floats(call, NULL, b, tq, units);
    float *of_memory = rapt_call_floats(call, NULL, b, tk, units);
    rapt_call_project_part(call, &both, 0, d, desc->state, b * tq, of_state);
    rapt_call_project_part(call, &both, d, e, desc->memory, b * tk, of_memory);
    for (int64_t i = 0; tq > 0 && i < b && call->status == RAPT_OK; i++)
        rapt_additive_scores(of_state + i * tq * units, of_memory + i * tk * units, desc->v_a, tq, tk, units,
                             scores + i * tq * tk);
}

/* Local-p writes align in a call of its own, whose descriptor otherwise equals all. */
static void check_calls(struct rapt_call *call, const rapt_luong_desc *desc, const rapt_attention_desc *all) {
    rapt_attention_desc aligned = *all;
    rapt_call_check(call, all);
    if (call->status != RAPT_OK || desc->window != RAPT_LUONG_LOCAL_P || !desc->align)
        return;
    aligned.weights = rapt_output_bhsd(desc->align, all->batch, 1, all->query_length, all->kv_length);
    aligned.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    rapt_call_check(call, &aligned);
}

/* Sets query, key and what else makes the engine's scores. */
static void set_scores(struct rapt_call *call, const rapt_luong_desc *desc, rapt_attention_desc *all) {
    const int64_t b = all->batch, tq = all->query_length, tk = all->kv_length, e = desc->memory_width;
    if (desc->score == RAPT_LUONG_CONCAT) {
        float *scores = rapt_call_floats(call, desc->scores, b, tq, tk);
        score_concat(call, desc, all, scores);
        if (call->status != RAPT_OK)
            return; /* sizes may overflow */
        rapt_attend_to_scores(call, all, scores);
        check_calls(call, desc, all);
        return;
    }
    const float *query = desc->state;
    if (desc->score == RAPT_LUONG_GENERAL) {
        const rapt_linear general = layer_of_scores(desc);
        float *projected = rapt_call_floats(call, NULL, b, tq, e);
        rapt_call_project(call, &general, desc->state, b * tq, projected, 0);
        query = projected;
    }
    all->features |= RAPT_SCALE;
    all->scale = 1;
    all->head_dim = e;
    all->query = rapt_input_bhsd(query, b, 1, tq, e);
    all->key = rapt_input_bhsd(desc->memory, b, 1, tk, e);
    check_calls(call, desc, all);
    rapt_call_scores(call, all, desc->scores);
}

/* Equation 5: tanh(w_c [context; h_t]), of_* are scratch for the two halves. */
static void finish(struct rapt_call *call, const rapt_luong_desc *desc, int64_t rows, float *of_context,
                   float *of_state) {
    rapt_call_project_part(call, &desc->w_c, 0, desc->memory_width, desc->out, rows, of_context);
    rapt_call_project_part(call, &desc->w_c, desc->memory_width, desc->state_width, desc->state, rows, of_state);
    if (call->status != RAPT_OK)
        return;
    rapt_add(of_context, of_state, rows * desc->w_c.out, desc->attentional);
    rapt_tanh_of(desc->attentional, rows * desc->w_c.out);
}

rapt_status rapt_luong_attention(const rapt_luong_desc *desc, const rapt_run_options *options,
                                 rapt_message *message) {
    struct rapt_call call = rapt_call_begin(message, options, desc, sizeof *desc);
    if (call.status != RAPT_OK)
        return rapt_call_end(&call);
    rapt_attention_desc all = rapt_call_attention(&call, desc->attention);
    check(&call, desc, &all);
    const int64_t tq = all.query_length, tk = all.kv_length, rows = all.batch * tq, e = desc->memory_width;
    rapt_call_product(&call, all.batch, tq > tk ? tq : tk, e);
    float *of_context = NULL, *of_state = NULL;
    if (desc->w_c.weight) {
        of_context = rapt_call_floats(&call, NULL, rows, desc->w_c.out, 1);
        of_state = rapt_call_floats(&call, NULL, rows, desc->w_c.out, 1);
    }
    if (call.status != RAPT_OK)
        return rapt_call_end(&call);
    all.value_dim = e;
    all.value = rapt_input_bhsd(desc->memory, all.batch, 1, tk, e);
    all.out = rapt_output_bhsd(desc->out, all.batch, 1, tq, e);
    set_scores(&call, desc, &all);
    if (desc->window == RAPT_LUONG_LOCAL_P) {
        rapt_luong_local_p(&call, desc, &all);
    } else {
        if (desc->window == RAPT_LUONG_LOCAL_M) {
            all.features |= RAPT_WINDOW;
            all.window_left = all.window_right = desc->reach;
            all.query_origin = RAPT_ORIGIN_TOP_LEFT;
        }
        rapt_call_attend(&call, &all);
    }
    if (desc->w_c.weight)
        finish(&call, desc, rows, of_context, of_state);
    return rapt_call_end(&call);
}
