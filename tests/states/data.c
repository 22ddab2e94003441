/* SPDX-License-Identifier: MIT */
#include "states/data.h"

#include "support/cmocka_all.h"
#include "support/support.h"

void states_call_draw(struct states_call *call, int64_t rows, int64_t keys, int64_t dim, uint64_t seed) {
    struct random random = {seed};
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = desc.query_heads = desc.kv_heads = 1;
    desc.query_length = rows;
    desc.kv_length = keys;
    desc.head_dim = desc.value_dim = dim;
    desc.query = rapt_input_bhsd(test_drawn(&random, rows * dim, random_normal), 1, 1, rows, dim);
    desc.key = rapt_input_bhsd(test_drawn(&random, keys * dim, random_normal), 1, 1, keys, dim);
    desc.value = rapt_input_bhsd(test_drawn(&random, keys * dim, random_normal), 1, 1, keys, dim);
    desc.out = rapt_output_bhsd(test_floats(rows * dim), 1, 1, rows, dim);
    call->desc = desc;
}

static void run(const rapt_attention_desc *desc) {
    rapt_message message = {""};
    if (rapt_attention(desc, NULL, &message) != RAPT_OK)
        fail_msg("%s", message.text);
}

void states_run_whole(const struct states_call *call, float *out, float *lse) {
    rapt_attention_desc desc = call->desc;
    desc.out.data = out;
    desc.lse = rapt_output_bhsd(lse, 1, 1, desc.query_length, 1);
    run(&desc);
}

rapt_tensor states_of_keys(const struct states_call *call, int64_t first, int64_t keys, const rapt_tensor *from) {
    const rapt_tensor none = {0};
    rapt_attention_desc desc = call->desc;
    const int64_t floats = 2 + desc.value_dim;
    desc.kv_length = keys;
    desc.key_position = rapt_int64_list(&first, 1);
    desc.key.data = (char *)desc.key.data + first * desc.key.token_stride_bytes;
    desc.value.data = (char *)desc.value.data + first * desc.value.token_stride_bytes;
    desc.key.extent_bytes = desc.value.extent_bytes = 0;
    desc.out = none;
    if (from)
        desc.initial_state = *from;
    desc.final_state =
        rapt_output_bhsd(test_floats(desc.query_length * floats), 1, 1, desc.query_length, floats);
    run(&desc);
    return desc.final_state;
}
