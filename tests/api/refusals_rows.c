/* SPDX-License-Identifier: MIT */
#include "api/refusals.h"

enum { CANARY = 0xA5 };

const float zeros[ROOM];

static rapt_attention_desc desc;
static float query[ROOM], key[ROOM], value[ROOM], bias[ROOM], per_head[4];
static float out[ROOM], lse[ROOM], weights[ROOM], states[ROOM];
static uint8_t all_true[ROOM];
static int wrong;

rapt_attention_desc *fresh(void) {
    const rapt_attention_desc off = RAPT_ATTENTION_DESC_INIT;
    for (int i = 0; i < ROOM; i++) {
        query[i] = (float)(i % 7 - 3);
        key[i] = (float)(i % 5 - 2);
        value[i] = (float)(i % 11);
        bias[i] = 0;
    }
    memset(all_true, 1, sizeof all_true);
    memset(out, CANARY, sizeof out);
    memset(lse, CANARY, sizeof lse);
    memset(weights, CANARY, sizeof weights);
    memset(states, CANARY, sizeof states);
    desc = off;
    desc.batch = 2;
    desc.query_heads = 4;
    desc.kv_heads = 2;
    desc.query_length = 3;
    desc.kv_length = 5;
    desc.head_dim = 8;
    desc.query = rapt_input_bhsd(query, 2, 4, 3, 8);
    desc.key = rapt_input_bhsd(key, 2, 2, 5, 8);
    desc.value = rapt_input_bhsd(value, 2, 2, 5, 8);
    desc.out = rapt_output_bhsd(out, 2, 4, 3, 8);
    /* Rows change sizes and strides, and set the extents that they test. */
    desc.query.extent_bytes = desc.key.extent_bytes = desc.value.extent_bytes = desc.out.extent_bytes = 0;
    return &desc;
}

static bool all_canaries(const float *array) {
    const unsigned char *bytes = (const unsigned char *)array;
    for (size_t i = 0; i < ROOM * sizeof(float); i++)
        if (bytes[i] != CANARY)
            return false;
    return true;
}

bool outputs_untouched(void) {
    return all_canaries(out) && all_canaries(lse) && all_canaries(weights) && all_canaries(states);
}
const float *fresh_out(void) { return out; }
const float *fresh_lse(void) { return lse; }

static rapt_tensor bool_rows(const rapt_attention_desc *d) {
    rapt_tensor tensor = {0};
    tensor.data = all_true;
    tensor.dtype = RAPT_BOOL8;
    tensor.token_stride_bytes = d->kv_length;
    tensor.head_stride_bytes = d->query_length * d->kv_length;
    tensor.batch_stride_bytes = d->query_heads * tensor.head_stride_bytes;
    return tensor;
}

void with_mask(rapt_attention_desc *d) { d->mask = bool_rows(d); }

void with_keep(rapt_attention_desc *d) {
    d->keep_mask = bool_rows(d);
    d->keep_scale = 1;
}

void with_bias(rapt_attention_desc *d) {
    d->bias = rapt_input_bhsd(bias, 0, d->query_heads, d->query_length, d->kv_length);
}

void with_states(rapt_attention_desc *d) {
    const int64_t floats = 2 + (d->value_dim ? d->value_dim : d->head_dim);
    d->initial_state = rapt_input_bhsd(zeros, 0, d->query_heads, d->query_length, floats);
    d->final_state = rapt_output_bhsd(states, 0, d->query_heads, d->query_length, floats);
}

void with_lse(rapt_attention_desc *d) { d->lse = rapt_output_bhsd(lse, 0, d->query_heads, d->query_length, 1); }

void with_weights(rapt_attention_desc *d) {
    d->weights = rapt_output_bhsd(weights, 0, d->query_heads, d->query_length, d->kv_length);
    d->weights_kind = RAPT_WEIGHTS_SOFTMAX;
}

void fuse(rapt_attention_desc *d, int floats) {
    d->query.token_stride_bytes = d->out.token_stride_bytes = 64 * 4;
    d->query.head_stride_bytes = d->out.head_stride_bytes = 8 * 4;
    d->query.batch_stride_bytes = d->out.batch_stride_bytes = 3 * 64 * 4;
    d->query.data = out;
    d->out.data = out + floats;
}

rapt_index_list list32(const void *data) {
    const rapt_index_list list = {.data = data, .index_bytes = 4};
    return list;
}

rapt_index_list list64(const void *data) {
    const rapt_index_list list = {.data = data, .index_bytes = 8};
    return list;
}

const float *last_is(float x) {
    per_head[3] = x;
    return per_head;
}

static void judge(bool right, int line, const char *what, rapt_status status, const char *text) {
    if (right)
        return;
    print_error("line %d: %s: status %d, message \"%s\"\n", line, what, (int)status, text);
    wrong++;
}

void expect_refused(const rapt_attention_desc *d, rapt_status status, const char *text, int line) {
    rapt_message message = {"stale"};
    rapt_plan plan;
    rapt_status got = rapt_plan_init(&plan, d, &message);
    judge(got == status && strstr(message.text, text), line, "plan", got, message.text);
    got = rapt_plan_init(&plan, d, NULL);
    judge(got == status, line, "plan without message", got, "");
    message.text[0] = '\0';
    got = rapt_attention(d, NULL, &message);
    judge(got == status && strstr(message.text, text), line, "call", got, message.text);
    judge(outputs_untouched(), line, "outputs were written", got, message.text);
}

void expect_legal(const rapt_attention_desc *d, bool run, int line) {
    rapt_message message = {"stale"};
    rapt_plan plan;
    rapt_status got = rapt_plan_init(&plan, d, &message);
    judge(got == RAPT_OK && !message.text[0], line, "plan", got, message.text);
    if (!run || got != RAPT_OK)
        return;
    got = rapt_attention(d, NULL, &message);
    judge(got == RAPT_OK && !message.text[0], line, "call", got, message.text);
}

int wrong_rows(void) {
    const int count = wrong;
    wrong = 0;
    return count;
}
