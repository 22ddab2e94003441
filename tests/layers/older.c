/* SPDX-License-Identifier: MIT
 * System 12: Bahdanau's and Luong's attention. */
#include "layers/data.h"

static void additive(void) {
    layers_case("12a_additive", 4);
    rapt_message message;
    rapt_attention_desc how = attention(1, 1, 4, 10);
    float *weights = ask_weights(&how);
    rapt_additive_desc layer = RAPT_ADDITIVE_DESC_INIT;
    layer.attention = &how;
    layer.state = floats("s");
    layer.memory = floats("h");
    layer.w = linear("w_a", NULL);
    layer.u = linear("u_a", NULL);
    layer.v = floats("v_a");
    layer.out = results(4 * 6);
    layer.scores = results(4 * 10);
    expect_ok(rapt_additive_attention(&layer, layers_options(), &message), &message);
    expect("scores", layer.scores);
    expect("weights", weights);
    expect("out", layer.out);
}

static rapt_luong_desc luong_of(const rapt_attention_desc *how, int32_t score) {
    rapt_luong_desc layer = RAPT_LUONG_DESC_INIT;
    struct npy_array state = load("h_t", NPY_FLOAT32), memory = load("h_s", NPY_FLOAT32);
    layer.attention = how;
    layer.score = score;
    layer.state = state.data;
    layer.memory = memory.data;
    layer.state_width = state.shape[1];
    layer.memory_width = memory.shape[1];
    if (score != RAPT_LUONG_DOT) layer.w_a = floats("w_a");
    layer.out = results(how->query_length * layer.memory_width);
    layer.scores = results(how->query_length * how->kv_length);
    return layer;
}

static void run(const rapt_luong_desc *layer, const float *weights) {
    rapt_message message;
    expect_ok(rapt_luong_attention(layer, layers_options(), &message), &message);
    expect("scores", layer->scores);
    expect("weights", weights);
    expect("out", layer->out);
}

static void global(const char *name, int32_t score) {
    layers_case(name, 4);
    rapt_attention_desc how = attention(1, 1, 4, 10);
    float *weights = ask_weights(&how);
    rapt_luong_desc layer = luong_of(&how, score);
    if (score == RAPT_LUONG_CONCAT) {
        layer.v_a = floats("v_a");
        layer.units = 7;
    }
    layer.w_c = linear("w_c", NULL);
    layer.attentional = results(4 * 8);
    run(&layer, weights);
    expect("attentional", layer.attentional);
}

static void expect_inside(const float *weights) {
    struct npy_array inside = load("inside", NPY_BOOL);
    for (int64_t i = 0; i < inside.count; i++) assert_int_equal(weights[i] > 0, ((const bool *)inside.data)[i]);
}

static void local(void) {
    layers_case("12e_luong_local_p", 4);
    rapt_attention_desc how = attention(1, 1, 6, 12);
    float *weights = ask_weights(&how);
    rapt_luong_desc layer = luong_of(&how, RAPT_LUONG_GENERAL);
    layer.window = RAPT_LUONG_LOCAL_P;
    layer.reach = *(const int32_t *)load("d_window", NPY_INT32).data;
    layer.w_p = linear("w_p", NULL);
    layer.v_p = floats("v_p");
    layer.align = results(6 * 12);
    layer.position = results(6);
    run(&layer, weights);
    expect("align", layer.align);
    expect("p_t", layer.position);
    expect_inside(weights);

    layers_case("12f_luong_local_m", 4);
    how = attention(1, 1, 8, 7);
    weights = ask_weights(&how);
    layer = luong_of(&how, RAPT_LUONG_GENERAL);
    layer.window = RAPT_LUONG_LOCAL_M;
    layer.reach = *(const int32_t *)load("d_window", NPY_INT32).data;
    run(&layer, weights);
    expect_inside(weights);
}

void cases_older(void) {
    additive();
    global("12b_luong_dot", RAPT_LUONG_DOT);
    global("12c_luong_general", RAPT_LUONG_GENERAL);
    global("12d_luong_concat", RAPT_LUONG_CONCAT);
    local();
}
