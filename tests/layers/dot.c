/* SPDX-License-Identifier: MIT
 * Systems 1, 8 and the generalised attention of 12: dot products without their own weights. */
#include "layers/data.h"

/* Query, key, value and mask of the case in their own shapes; fill: replaces masked scores. */
struct dot {
    const char *name, *query, *key, *value, *mask;
    bool scaled, scores;
    float fill;
};

static float *run(const struct dot *dot) {
    layers_case(dot->name, 4);
    rapt_message message;
    rapt_dot_product_desc layer = RAPT_DOT_PRODUCT_DESC_INIT;
    struct npy_array query = load(dot->query, NPY_FLOAT32), key = load(dot->key, NPY_FLOAT32);
    struct npy_array value = load(dot->value, NPY_FLOAT32), mask;
    const int n = layer.leading = query.dims - 2;
    layer.isa = (int32_t)layers_isa;
    layer.shape = query.shape;
    layer.query_length = query.shape[n];
    layer.kv_length = key.shape[n];
    layer.head_dim = query.shape[n + 1];
    layer.value_dim = value.shape[n + 1];
    layer.query = query.data;
    layer.key = key.data;
    layer.value = value.data;
    if (dot->mask) {
        mask = load(dot->mask, NPY_BOOL | NPY_INT32);
        layer.mask = mask_bytes(dot->mask);
        layer.mask_shape = mask.shape;
        layer.features |= RAPT_MASK_FILL;
        layer.mask_fill = dot->fill;
    }
    if (!dot->scaled) {
        layer.features |= RAPT_SCALE;
        layer.scale = 1;
    }
    const int64_t rows = query.count / layer.head_dim;
    layer.out = results(rows * layer.value_dim);
    layer.weights = results(rows * layer.kv_length);
    layer.scores = dot->scores ? results(rows * layer.kv_length) : NULL;
    expect_ok(rapt_dot_product_attention(&layer, layers_options(), &message), &message);
    if (dot->scores) expect("scores", layer.scores);
    expect("weights", layer.weights);
    expect("out", layer.out);
    return layer.out;
}

void cases_dot_product(void) {
    static const float journey[] = {.4421f, .5931f, .5790f, .4419f, .6515f, .5683f, .4431f, .6496f, .5671f,
                                    .4304f, .6298f, .5510f, .4671f, .5910f, .5266f, .4177f, .6503f, .5645f};
    static const struct dot simplified[] = {{"01a_simplified_hello", "x", "x", "x", NULL, .scores = true},
                                            {"01b_simplified_journey", "x", "x", "x", NULL, .scores = true},
                                            {"12g_generalised", "q", "k", "v", NULL, .scores = true}};
    static const struct dot scaled[] = {
        {"08a_sdpa", "q", "k", "v", NULL, .scaled = true},
        {"08b_sdpa_padding", "q", "k", "v", "mask", .scaled = true, .fill = -1e9f},
        {"08c_sdpa_all_masked", "q", "k", "v", "mask", .scaled = true, .fill = -1e9f},
        {"08d_sdpa_2d_causal", "q", "k", "v", "mask", .scaled = true, .fill = -1e9f},
        {"08e_sdpa_5d", "q", "k", "v", "mask", .scaled = true, .fill = -1e9f},
        {"09a_cross_sdpa", "q", "k", "v", "mask", .scaled = true, .fill = -1e9f}};
    run(&simplified[0]);
    expect_digits(run(&simplified[1]), journey, 18);
    run(&simplified[2]);
    for (size_t i = 0; i < sizeof scaled / sizeof scaled[0]; i++) run(&scaled[i]);
}
