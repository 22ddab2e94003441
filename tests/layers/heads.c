/* SPDX-License-Identifier: MIT
 * Systems 6, 7 and 9, dropout in several heads (4): several heads with an output projection. */
#include "layers/data.h"

#include <string.h>

static rapt_multi_head_desc layer_of(const rapt_attention_desc *how) {
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = how;
    return layer;
}

/* Runs a layer with three projections; keeps their outputs in *_out and context. */
static void run_split(rapt_multi_head_desc *layer) {
    const rapt_attention_desc *how = layer->attention;
    const int64_t queries = how->batch * how->query_length, keys = how->batch * how->kv_length;
    rapt_message message;
    layer->query_out = results(queries * layer->query.out);
    layer->key_out = results(keys * layer->key.out);
    layer->value_out = results(keys * layer->value.out);
    layer->context = results(queries * layer->output.in);
    layer->out = results(queries * layer->output.out);
    expect_ok(rapt_multi_head_attention(layer, layers_options(), &message), &message);
}

static void split(void) {
    static const float digits[] = {.3190f, .4858f, .2943f, .3897f, .2856f, .3593f,
                                   .2693f, .3873f, .2639f, .3928f, .2575f, .4028f};
    layers_case("06a_mha_split", 4);
    rapt_attention_desc how = attention(2, 2, 6, 6);
    how.features = RAPT_CAUSAL;
    float *weights = ask_weights(&how);
    rapt_multi_head_desc layer = layer_of(&how);
    layer.x = floats("x");
    layer.query = linear("w_q", NULL);
    layer.key = linear("w_k", NULL);
    layer.value = linear("w_v", NULL);
    layer.output = linear("w_o", "b_o");
    run_split(&layer);
    expect_heads("q", layer.query_out, 2, 0, 1);
    expect_heads("k", layer.key_out, 2, 0, 1);
    expect_heads("v", layer.value_out, 2, 0, 1);
    expect("weights", weights);
    expect("context", layer.context);
    expect("out", layer.out);
    expect_digits(layer.out, digits, 12);
    expect_digits(layer.out + 12, digits, 12);
}

static void with_biases(rapt_multi_head_desc *layer) {
    layer->query = linear("w_q", "b_q");
    layer->key = linear("w_k", "b_k");
    layer->value = linear("w_v", "b_v");
    layer->output = linear("w_o", "b_o");
}

static void dropout(void) {
    layers_case("04c_dropout_mha", 4);
    rapt_attention_desc how = attention(2, 3, 10, 10);
    how.features = RAPT_CAUSAL;
    const double p = *(const double *)load("p", NPY_FLOAT64).data;
    const unsigned char *keep = mask_bytes("keep");
    how.keep_mask = rapt_bool_mask(keep, 300, 100, 10);
    how.keep_scale = (float)(1 / (1 - p));
    float *weights = ask_weights(&how), *dropped = results(600);
    rapt_multi_head_desc layer = layer_of(&how);
    layer.x = floats("x");
    with_biases(&layer);
    run_split(&layer);
    for (int i = 0; i < 600; i++) dropped[i] = keep[i] ? weights[i] * how.keep_scale : 0;
    expect_heads("q", layer.query_out, 12, 0, 4);
    expect_heads("k", layer.key_out, 12, 0, 4);
    expect_heads("v", layer.value_out, 12, 0, 4);
    expect("weights", weights);
    expect("weights_dropped", dropped);
    expect("context", layer.context);
    expect("out", layer.out);
}

static void cross(const char *name, int64_t batch, int64_t heads, int64_t queries, int64_t keys, bool masked) {
    layers_case(name, 4);
    rapt_attention_desc how = attention(batch, heads, queries, keys);
    if (masked) {
        how.mask = rapt_bool_mask(mask_bytes("mask"), keys, 0, 0);
        how.features = RAPT_MASK_FILL;
        how.mask_fill = -1e9f;
    }
    float *weights = ask_weights(&how);
    rapt_multi_head_desc layer = layer_of(&how);
    layer.x = floats("x_q");
    layer.memory = floats("x_k");
    layer.memory_value = floats("x_v");
    with_biases(&layer);
    run_split(&layer);
    expect("weights", weights);
    expect("context", layer.context);
    expect("out", layer.out);
}

/* mask_dims: 0 = none, 2 = for all, 3 = per sequence. */
static void fused(const char *name, int64_t heads, int64_t dim, int mask_dims) {
    layers_case(name, 4);
    rapt_message message;
    rapt_attention_desc how = attention(2, heads, 7, 7);
    if (mask_dims) {
        how.mask = rapt_bool_mask(mask_bytes("mask"), mask_dims == 3 ? 49 : 0, 0, 7);
        how.features = RAPT_MASK_FILL;
        how.mask_fill = -9e15f;
    }
    float *weights = ask_weights(&how);
    rapt_multi_head_desc layer = layer_of(&how);
    layer.x = floats("x");
    layer.fused = linear("w_qkv", "b_qkv");
    layer.output = linear("w_o", "b_o");
    layer.fused_out = results(2 * 7 * layer.fused.out);
    layer.out = results(2 * 7 * layer.output.out);
    expect_ok(rapt_multi_head_attention(&layer, layers_options(), &message), &message);
    expect_heads("q", layer.fused_out, layer.fused.out, 0, 3 * dim);
    expect_heads("k", layer.fused_out, layer.fused.out, dim, 3 * dim);
    expect_heads("v", layer.fused_out, layer.fused.out, 2 * dim, 3 * dim);
    expect("weights", weights);
    expect("out", layer.out);
}

void cases_heads(void) {
    split();
    dropout();
    fused("07a_fused_qkv", 3, 4, 0);
    fused("07b_fused_qkv_mask2d_bias", 4, 3, 2);
    fused("07c_fused_qkv_mask3d", 3, 4, 3);
    cross("09b_cross_mha", 2, 4, 5, 11, true);
    cross("09c_cross_mha_one_query", 3, 2, 1, 9, false);
}

/* Element i of tensor number s of the GPT-2 cases: data/layers/README.md. */
static float made(uint32_t i, uint32_t s, float unit) {
    uint32_t h = i * 0x9E3779B1u + s * 0x85EBCA6Bu;
    h = (h ^ (h >> 15)) * 0x2C1B3C6Du;
    h = (h ^ (h >> 12)) * 0x297A2D39u;
    h ^= h >> 15;
    return (float)((int)(h >> 20) - 2048) * unit;
}

static float *make(uint32_t s, uint32_t count, float unit) {
    float *values = results(count);
    for (uint32_t i = 0; i < count; i++) values[i] = made(i, s, unit);
    return values;
}

static void gpt2(const char *name, uint32_t base, int64_t tokens, int64_t heads) {
    layers_case(name, 8);
    const int64_t width = heads * 64;
    rapt_message message;
    rapt_attention_desc how = attention(1, heads, tokens, tokens);
    how.features = RAPT_CAUSAL;
    float *weights = ask_weights(&how);
    rapt_multi_head_desc layer = layer_of(&how);
    rapt_linear *linears[] = {&layer.query, &layer.key, &layer.value, &layer.output};
    for (uint32_t i = 0; i < 4; i++)
        *linears[i] = rapt_linear_of(make(base + 2 + i, (uint32_t)(width * width), 0x1p-14f),
                                     make(base + 6 + i, (uint32_t)width, 0x1p-13f), width, width);
    layer.x = floats("x");
    assert_memory_equal(layer.x, make(base + 1, (uint32_t)(tokens * width), 0x1p-11f),
                        (size_t)(tokens * width) * sizeof(float));
    layer.out = results(tokens * width);
    expect_ok(rapt_multi_head_attention(&layer, layers_options(), &message), &message);
    expect("weights", weights);
    expect("out", layer.out);
}

void cases_gpt2(void) {
    gpt2("06b_gpt2_small", 0, 16, 12);
    gpt2("06c_gpt2_xl", 16, 4, 25);
}
