/* SPDX-License-Identifier: MIT */
#include "problem_data.h"

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
