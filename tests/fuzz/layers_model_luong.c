/* SPDX-License-Identifier: MIT
 * Luong's attention. */
#include <math.h>
#include <string.h>

#include "layers/elementary.h"
#include "layers_model.h"
#include "reference/rows.h"
#include "support/support.h"

/* Rows of [batch][query_length], which all exist. */
static int64_t rows_of(const rapt_attention_desc *how) { return how->batch * how->query_length; }

static void score_concat(const rapt_luong_desc *luong, const rapt_attention_desc *how, float *scores) {
    const int64_t tq = how->query_length, tk = how->kv_length, d = luong->state_width, e = luong->memory_width;
    const rapt_linear both = rapt_linear_of(luong->w_a, NULL, d + e, luong->units);
    float *of_state = test_floats(luong->units), *of_memory = test_floats(luong->units);
    for (int64_t i = 0; i < rows_of(how) * tk; i++) {
        const int64_t query = i / tk, key = query / tq * tk + i % tk;
        project_part(&both, 0, d, luong->state + query * d, of_state);
        project_part(&both, d, e, luong->memory + key * e, of_memory);
        scores[i] = additive_score(luong->v_a, of_state, of_memory, luong->units);
    }
}

static void set_scores(const rapt_luong_desc *luong, rapt_attention_desc *how) {
    const int64_t rows = rows_of(how), d = luong->state_width, e = luong->memory_width;
    how->features |= RAPT_SCALE, how->scale = 1;
    if (luong->score == RAPT_LUONG_CONCAT) {
        float *scores = room(luong->scores, rows * how->kv_length);
        score_concat(luong, how, scores);
        attend_to(how, scores);
        return;
    }
    const float *query = luong->state;
    if (luong->score == RAPT_LUONG_GENERAL) {
        const rapt_linear general = rapt_linear_in_out(luong->w_a, NULL, d, e);
        float *projected = test_floats(rows * e);
        for (int64_t row = 0; row < rows; row++)
            project(&general, luong->state + row * d, projected + row * e);
        query = projected;
    }
    how->head_dim = e;
    how->query = heads_at(query, how->query_length, e, 0, 0);
    how->key = heads_at(luong->memory, how->kv_length, e, 0, 0);
    write_scores(how, luong->scores);
}

static void predict(const rapt_luong_desc *luong, const rapt_attention_desc *how, float *position) {
    float *x = test_floats(luong->w_p.out);
    for (int64_t row = 0; row < rows_of(how); row++) {
        double sum = 0;
        project(&luong->w_p, luong->state + row * luong->state_width, x);
        for (int64_t k = 0; k < luong->w_p.out; k++)
            sum += (double)luong->v_p[k] * rapt_tanh((double)x[k]);
        position[row] = rounded((double)rapt_reference_keys(how, row / how->query_length) * rapt_sigmoid(sum));
    }
}

/* The sum of align * g. */
static double share_of(const float *align, double position, int64_t keys, double reach) {
    double sum = 0;
    for (int64_t s = 0; s < keys; s++) {
        const double distance = (double)s - position;
        if (align[s] != 0)
            sum += (double)align[s] * rapt_exp(-(distance * distance * (2 / (reach * reach))));
    }
    return sum;
}

static void scale_row(float *x, int64_t count, double factor) {
    for (int64_t i = 0; i < count; i++)
        x[i] = rounded(factor * (double)x[i]);
}

/* softmax(s + log g) * sum of softmax(s) * g */
static void attend_locally(const rapt_luong_desc *luong, rapt_attention_desc *how) {
    const int64_t tq = how->query_length, tk = how->kv_length, rows = rows_of(how), e = luong->memory_width;
    float *position = room(luong->position, rows), *gauss = test_floats(rows * tk);
    float *align = room(luong->align, rows * tk);
    unsigned char *mask = test_alloc((size_t)(rows * tk));
    const double reach = (double)luong->reach;
    predict(luong, how, position);
    for (int64_t i = 0; i < rows * tk; i++) {
        const double distance = (double)(i % tk) - (double)position[i / tk];
        const double before = how->bias.data ? (double)((const float *)how->bias.data)[i] : 0;
        mask[i] = !(fabs(distance) > reach);
        gauss[i] = (float)(before - distance * distance * (2 / (reach * reach)));
    }
    how->mask = rapt_bool_mask(mask, tq * tk, 0, tk);
    rapt_attention_desc first = *how, second = *how;
    first.weights = heads_at(align, tq, tk, 0, 0);
    first.weights_kind = RAPT_WEIGHTS_SOFTMAX;
    second.bias = heads_at(gauss, tq, tk, 0, 0);
    run_attention(&first);
    run_attention(&second);
    for (int64_t row = 0; row < rows; row++) {
        const double factor = share_of(align + row * tk, (double)position[row], tk, reach);
        scale_row(luong->out + row * e, e, factor);
        if (how->weights.data)
            scale_row((float *)(void *)rapt_reference_row(&how->weights, row / tq, 0, row % tq), tk, factor);
    }
}

/* tanh(w_c [context; h_t]) */
static void finish(const rapt_luong_desc *luong, int64_t rows) {
    const int64_t d = luong->state_width, e = luong->memory_width, width = luong->w_c.out;
    float *of_context = test_floats(width), *of_state = test_floats(width);
    for (int64_t row = 0; row < rows; row++) {
        float *to = luong->attentional + row * width;
        project_part(&luong->w_c, 0, e, luong->out + row * e, of_context);
        project_part(&luong->w_c, e, d, luong->state + row * d, of_state);
        add(of_context, of_state, width, to);
        for (int64_t i = 0; i < width; i++)
            to[i] = to[i] != to[i] ? to[i] : (float)rapt_tanh((double)to[i]);
    }
}

void model_luong(const void *desc) {
    const rapt_luong_desc *luong = desc;
    rapt_attention_desc how = *luong->attention;
    how.value_dim = luong->memory_width;
    how.value = heads_at(luong->memory, how.kv_length, luong->memory_width, 0, 0);
    how.out = heads_at(luong->out, how.query_length, luong->memory_width, 0, 0);
    set_scores(luong, &how);
    if (luong->window == RAPT_LUONG_LOCAL_M) {
        how.features |= RAPT_WINDOW;
        how.window_left = how.window_right = luong->reach;
        how.query_origin = RAPT_ORIGIN_TOP_LEFT;
    }
    if (luong->window == RAPT_LUONG_LOCAL_P)
        attend_locally(luong, &how);
    else
        run_attention(&how);
    if (luong->w_c.weight)
        finish(luong, rows_of(&how));
}
