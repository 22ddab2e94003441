/* SPDX-License-Identifier: MIT
 * System 10: the encoder block. */
#include "layers/data.h"

static rapt_norm norm(const char *gamma, const char *beta) { return (rapt_norm){floats(gamma), floats(beta), 1e-5f}; }

static void block(const char *name, int64_t heads, bool masked) {
    layers_case(name, 4);
    rapt_message message;
    rapt_attention_desc how = attention(2, heads, 9, 9);
    if (masked) {
        how.mask = rapt_bool_mask(mask_bytes("mask"), 81, 0, 9);
        how.features = RAPT_MASK_FILL;
        how.mask_fill = -9e15f;
    }
    float *weights = ask_weights(&how);
    rapt_multi_head_desc inner = RAPT_MULTI_HEAD_DESC_INIT;
    inner.attention = &how;
    inner.fused = linear("w_qkv", "b_qkv");
    inner.output = linear("w_o", "b_o");
    inner.out = results(2 * 9 * 16);
    rapt_encoder_desc layer = RAPT_ENCODER_DESC_INIT;
    layer.attention = &inner;
    layer.norm1 = norm("ln1_gamma", "ln1_beta");
    layer.norm2 = norm("ln2_gamma", "ln2_beta");
    layer.ff1 = linear("w_ff1", "b_ff1");
    layer.ff2 = linear("w_ff2", "b_ff2");
    layer.activation = RAPT_RELU;
    layer.x = floats("x");
    layer.out = results(2 * 9 * 16);
    layer.norm1_out = results(2 * 9 * 16);
    layer.ff_out = results(2 * 9 * 16);
    expect_ok(rapt_encoder_block(&layer, layers_options(), &message), &message);
    expect("weights", weights);
    expect("attention", inner.out);
    expect("norm1", layer.norm1_out);
    expect("ff", layer.ff_out);
    expect("out", layer.out);
}

void cases_encoder(void) {
    block("10a_encoder_block", 4, false);
    block("10b_encoder_block_mask_affine", 2, true);
}
