/* SPDX-License-Identifier: MIT
 * Systems 2 to 5 and 11: one head with its own weights, causal, with dropout, stacked, on embeddings. */
#include "layers/data.h"

/* One head; results NULL in the case are absent. */
struct self {
    const char *name;
    int64_t batch, tokens;
    const char *bias[3];
    bool in_out, causal, dropout, scores, scaled_scores, projections, weights;
};

static rapt_linear of(const struct self *self, const char *weight, int which) {
    return self->in_out ? linear_in_out(weight) : linear(weight, self->bias[which]);
}

static void set_dropout(rapt_attention_desc *desc) {
    const double p = *(const double *)load("p", NPY_FLOAT64).data;
    desc->keep_mask = rapt_bool_mask(mask_bytes("keep"), desc->query_heads * desc->query_length * desc->kv_length,
                                     desc->query_length * desc->kv_length, desc->kv_length);
    desc->keep_scale = (float)(1 / (1 - p));
}

/* What the engine's sum over values used. */
static void expect_dropped(const rapt_attention_desc *desc, const float *weights, int64_t count) {
    float *dropped = results(count);
    const unsigned char *keep = desc->keep_mask.data;
    for (int64_t i = 0; i < count; i++) dropped[i] = keep[i] ? weights[i] * desc->keep_scale : 0;
    expect("weights_dropped", dropped);
}

static void run(const struct self *self, const float *x, float *out) {
    const int64_t b = self->batch, t = self->tokens;
    rapt_message message;
    rapt_attention_desc how = attention(b, 1, t, t);
    rapt_multi_head_desc layer = RAPT_MULTI_HEAD_DESC_INIT;
    layer.attention = &how;
    layer.x = x;
    layer.out = out;
    layer.query = of(self, "w_q", 0);
    layer.key = of(self, "w_k", 1);
    layer.value = of(self, "w_v", 2);
    if (self->causal) how.features |= RAPT_CAUSAL;
    if (self->dropout) set_dropout(&how);
    float *weights = self->weights ? ask_weights(&how) : NULL;
    layer.query_out = results(b * t * layer.query.out);
    layer.key_out = results(b * t * layer.key.out);
    layer.value_out = results(b * t * layer.value.out);
    layer.scores = self->scores ? results(b * t * t) : NULL;
    expect_ok(rapt_multi_head_attention(&layer, layers_options(), &message), &message);
    expect("out", out);
    if (self->projections) {
        expect("q", layer.query_out);
        expect("k", layer.key_out);
        expect("v", layer.value_out);
    }
    if (self->weights) expect("weights", weights);
    if (self->scores) expect("scores", layer.scores);
    if (self->dropout) expect_dropped(&how, weights, b * t * t);
    if (self->scaled_scores) {
        how.weights_kind = RAPT_WEIGHTS_RAW;
        expect_ok(rapt_multi_head_attention(&layer, layers_options(), &message), &message);
        expect("scaled_scores", weights);
    }
}

static float *run_case(const struct self *self) {
    layers_case(self->name, 4);
    float *out = results(load("out", NPY_FLOAT32).count);
    run(self, floats("x"), out);
    return out;
}

static void one_head(void) {
    static const float v1[] = {.2996f, .8053f, .3061f, .8210f, .3058f, .8203f,
                               .2948f, .7939f, .2927f, .7891f, .2990f, .8040f};
    static const float v2[] = {-.0739f, .0713f, -.0748f, .0703f, -.0749f, .0702f,
                               -.0760f, .0685f, -.0763f, .0679f, -.0754f, .0693f};
    static const float causal[] = {-.4519f, .2216f,  -.5874f, .0058f,  -.6300f, -.0632f,
                                   -.5675f, -.0843f, -.5526f, -.0981f, -.5299f, -.1081f};
    const struct self a = {"02a_self_attention_v1", 1, 6, .in_out = true, .scores = true, .projections = true,
                           .weights = true};
    const struct self b = {"02b_self_attention_v2", 1, 6, .scores = true, .projections = true, .weights = true};
    const struct self c = {"02c_self_attention_v2_bias", 1, 6, {"b_q", "b_k", "b_v"}, .scores = true,
                           .projections = true, .weights = true};
    const struct self d = {"03a_causal", 2, 6, .causal = true, .projections = true, .weights = true};
    const struct self e = {"03b_causal_long_context", 2, 6, .causal = true, .projections = true, .weights = true};
    const struct self f = {"03c_causal_300", 2, 300, {"b_q", "b_k", "b_v"}, .causal = true};
    expect_digits(run_case(&a), v1, 12);
    expect_digits(run_case(&b), v2, 12);
    run_case(&c);
    float *out = run_case(&d);
    expect_digits(out, causal, 12);
    expect_digits(out + 12, causal, 12);
    expect_digits(run_case(&e), causal, 12);
    run_case(&f);
}

static void dropout(void) {
    const struct self a = {"04a_dropout_weights", 1, 6, .causal = true, .dropout = true, .weights = true};
    const struct self b = {"04b_dropout_causal", 2, 6, .causal = true, .dropout = true, .projections = true,
                           .weights = true};
    run_case(&a);
    run_case(&b);
}

static void embedding(void) {
    const struct self self = {"11_embedding_to_attention", 1, 7, .in_out = true, .scores = true,
                              .scaled_scores = true, .projections = true, .weights = true};
    rapt_message message;
    layers_case(self.name, 4);
    struct npy_array ids = load("ids", NPY_INT64), table = load("embedding", NPY_FLOAT32);
    float *x = results(7 * 4), *out = results(7 * 3);
    expect_ok(rapt_embedding(rapt_int64_list(ids.data, ids.count), 7, table.data, table.shape[0], 4, x, &message),
              &message);
    assert_memory_equal(x, floats("x"), 7 * 4 * sizeof(float));
    run(&self, x, out);
}

/* head h's matrix from [heads][out][in]. */
static rapt_linear head_of(const char *weight, const char *bias, int64_t h) {
    struct npy_array array = load(weight, NPY_FLOAT32);
    const int64_t out = array.shape[1], in = array.shape[2];
    return rapt_linear_of((const float *)array.data + h * out * in, bias ? floats(bias) + h * out : NULL, in, out);
}

static float *stacked_case(const char *name, int64_t tokens, int64_t heads, const char *const bias[3]) {
    rapt_linear query[4], key[4], value[4];
    rapt_message message;
    layers_case(name, 4);
    for (int64_t h = 0; h < heads; h++) {
        query[h] = head_of("w_q", bias[0], h);
        key[h] = head_of("w_k", bias[1], h);
        value[h] = head_of("w_v", bias[2], h);
    }
    rapt_attention_desc how = attention(2, heads, tokens, tokens);
    how.features = RAPT_CAUSAL;
    float *weights = ask_weights(&how), *out = results(2 * tokens * heads * value[0].out);
    rapt_stacked_desc layer = RAPT_STACKED_DESC_INIT;
    layer.attention = &how;
    layer.x = floats("x");
    layer.query = query;
    layer.key = key;
    layer.value = value;
    layer.out = out;
    expect_ok(rapt_stacked_attention(&layer, layers_options(), &message), &message);
    expect("weights", weights);
    expect("out", out);
    return out;
}

static void stacked(void) {
    static const char *const none[3] = {0}, *const all[3] = {"b_q", "b_k", "b_v"};
    static const float digits[] = {-.4519f, .2216f,  .4772f, .1063f, -.5874f, .0058f,  .5891f, .3257f,
                                   -.6300f, -.0632f, .6202f, .3860f, -.5675f, -.0843f, .5478f, .3589f,
                                   -.5526f, -.0981f, .5321f, .3428f, -.5299f, -.1081f, .5077f, .3493f};
    expect_digits(stacked_case("05a_stacked", 6, 2, none), digits, 24);
    stacked_case("05b_stacked_bias", 7, 3, all);
}

void cases_self_attention(void) {
    one_head();
    dropout();
    stacked();
    embedding();
}
