/* SPDX-License-Identifier: MIT */
#include "support/problem_data.h"

void draw_numbers(rapt_attention_desc *desc, const struct problem_call *call) {
    static const float fills[] = {-1e9f, -9e15f, 0.0f, 3.0f}, caps[] = {0.5f, 5.0f, 30.0f, 50.0f};
    static const int64_t windows[] = {-1, 0, 1, 5, 100, 255, 256, 300, 600, INT64_MAX};
    static const float scales[] = {0.25f, 0.0f, -0.125f, 1.0f, 0.09f};
    struct random random = number_sequence(call, NUMBERS_SEQUENCE);
    if (call->use & USE_SCALE)
        desc->scale = scales[random_below(&random, 5)];
    if (call->use & USE_SOFTCAP)
        desc->softcap = caps[random_below(&random, 4)];
    if (call->use & USE_FILL)
        desc->mask_fill = fills[random_below(&random, 4)];
    if (call->use & USE_KEEP)
        desc->keep_scale = random_chance(&random, 80) ? 1.25f : 0.0f;
    if (call->use & USE_WINDOW) {
        desc->window_left = windows[random_below(&random, 10)];
        desc->window_right = windows[random_below(&random, 10)];
    }
    if (call->use & USE_WEIGHTS)
        desc->weights_kind = call->weights_kind;
    desc->tree_tokens = drawn_tree_tokens(call);
    desc->key_blocks = drawn_blocks(call);
    desc->features = (call->use & USE_SCALE ? RAPT_SCALE : 0) | (call->use & USE_CAUSAL ? RAPT_CAUSAL : 0) |
                     (call->use & USE_WINDOW ? RAPT_WINDOW : 0) |
                     (call->use & USE_FILL ? RAPT_MASK_FILL : 0) |
                     (call->use & USE_STANDARD_ALIBI ? RAPT_ALIBI_STANDARD : 0);
}

static int consistent_scales(int format, int scales) {
    const int uses = rapt_format_info(format)->uses;
    return !(uses & RAPT_MAY_SCALE) ? 0 : !scales && (uses & RAPT_MUST_SCALE) ? 1 : scales;
}

/* Order 2 has one type for both. */
static void set_half_formats(struct problem_call *call) {
    struct random random = {call->seed * 31 + 5};
    const bool is_half = call->key_format == RAPT_FORMAT_F16;
    const int drawn = random_chance(&random, 50) ? RAPT_FORMAT_F16 : RAPT_FORMAT_BF16;
    call->key_format = is_half || call->key_format == RAPT_FORMAT_BF16 ? call->key_format : drawn;
    call->value_format = call->key_format;
}

struct problem_call consistent_call(struct problem_call call) {
    if (call.numerics == RAPT_NUMERICS_ORDER_2)
        set_half_formats(&call);
    if (call.numerics == RAPT_NUMERICS_ORDER_3) {
        call.key_format = call.value_format = RAPT_FORMAT_F32;
        call.use &= ~(unsigned)USE_QUERY_16;
    }
    if (!(call.use & USE_MASK))
        call.use &= ~(unsigned)USE_FILL;
    if (!(call.use & USE_BIAS))
        call.use &= ~(unsigned)(USE_HEAD_FACTOR | USE_BIAS_16);
    if (!(call.use & (USE_MASK | USE_BIAS)))
        call.use &= ~(unsigned)USE_SPARSE;
    if (!(call.use & USE_FINAL_STATE))
        call.use &= ~(unsigned)USE_NO_OUT;
    if (call.use & USE_NO_OUT) /* no state contains a sink */
        call.use &= ~(unsigned)(USE_SINKS | USE_OUT_16);
    if (call.head_dim % rapt_format_info(call.key_format)->elements)
        call.key_format = RAPT_FORMAT_F32;
    if ((call.use & USE_VIEW) &&
        (call.value_dim > call.head_dim || call.value_dim % rapt_format_info(call.key_format)->elements))
        call.value_dim = call.head_dim;
    if (call.use & USE_VIEW)
        call.value_format = call.key_format;
    if (call.value_dim % rapt_format_info(call.value_format)->elements)
        call.value_format = RAPT_FORMAT_F32;
    call.key_scales = consistent_scales(call.key_format, call.key_scales);
    call.value_scales = call.use & USE_VIEW ? 0 : consistent_scales(call.value_format, call.value_scales);
    return call;
}
