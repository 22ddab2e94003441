/* SPDX-License-Identifier: MIT
 * Many sequences with a common prefix: one call attends to it for all, and each sequence continues from the resulting
 * state. docs/embedding.md shows these lines. */
#include <rapt/rapt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The prefix ends at a multiple of RAPT_STATE_KEYS, so bits are those of undivided calls. */
enum { BATCH = 12, QUERY_HEADS = 8, KV_HEADS = 2, HEAD_DIM = 64, PREFIX = 2 * RAPT_STATE_KEYS, MOST_OWN = 50 };

static float prefix_key[KV_HEADS][PREFIX][HEAD_DIM], prefix_value[KV_HEADS][PREFIX][HEAD_DIM];
static float own_key[BATCH][KV_HEADS][MOST_OWN][HEAD_DIM], own_value[BATCH][KV_HEADS][MOST_OWN][HEAD_DIM];
static float query[BATCH][QUERY_HEADS][HEAD_DIM]; /* one new token per sequence */
static float state[BATCH][QUERY_HEADS][2 + HEAD_DIM];
static float out[BATCH][QUERY_HEADS][HEAD_DIM], whole_out[QUERY_HEADS][HEAD_DIM];
static float whole_key[KV_HEADS][PREFIX + MOST_OWN][HEAD_DIM], whole_value[KV_HEADS][PREFIX + MOST_OWN][HEAD_DIM];
static rapt_message message;

static void fill(void *numbers, size_t bytes) {
    static unsigned seed = 1;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)numbers)[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
}

static void attend(const rapt_attention_desc *desc) {
    if (rapt_attention(desc, NULL, &message) == RAPT_OK) return;
    fprintf(stderr, "%s\n", message.text);
    exit(1);
}

/* The queries of all sequences pass as tokens of one, which reads the prefix once. Its result is a state, not out. */
static void attend_prefix(void) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = 1, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = BATCH, desc.kv_length = PREFIX, desc.head_dim = HEAD_DIM;
    desc.query = rapt_input_bshd(query[0][0], 1, BATCH, QUERY_HEADS, HEAD_DIM);
    desc.key = rapt_input_bhsd(prefix_key[0][0], 1, KV_HEADS, PREFIX, HEAD_DIM);
    desc.value = rapt_input_bhsd(prefix_value[0][0], 1, KV_HEADS, PREFIX, HEAD_DIM);
    desc.final_state = rapt_output_bshd(state[0][0], 1, BATCH, QUERY_HEADS, 2 + HEAD_DIM);
    attend(&desc);
}

/* Each sequence continues with its own keys, at the positions after the prefix. */
static void attend_own(const int32_t *own_lengths) {
    int32_t positions[BATCH];
    for (int b = 0; b < BATCH; b++) positions[b] = PREFIX;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = BATCH, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = 1, desc.kv_length = MOST_OWN, desc.head_dim = HEAD_DIM;
    desc.query = rapt_input_bhsd(query[0][0], BATCH, QUERY_HEADS, 1, HEAD_DIM);
    desc.key = rapt_input_bhsd(own_key[0][0][0], BATCH, KV_HEADS, MOST_OWN, HEAD_DIM);
    desc.value = rapt_input_bhsd(own_value[0][0][0], BATCH, KV_HEADS, MOST_OWN, HEAD_DIM);
    desc.kv_lengths = rapt_int32_list(own_lengths, BATCH);
    desc.key_position = rapt_int32_list(positions, BATCH);
    desc.initial_state = rapt_input_bhsd(state[0][0], BATCH, QUERY_HEADS, 1, 2 + HEAD_DIM);
    desc.out = rapt_output_bhsd(out[0][0], BATCH, QUERY_HEADS, 1, HEAD_DIM);
    attend(&desc);
}

/* The same for one sequence without a shared prefix: its own cache with all keys. */
static void attend_whole(int b, int64_t own_length) {
    const size_t prefix_bytes = sizeof prefix_key[0], own_bytes = (size_t)own_length * sizeof own_key[0][0][0];
    for (int h = 0; h < KV_HEADS; h++) {
        memcpy(whole_key[h], prefix_key[h], prefix_bytes);
        memcpy(whole_key[h][PREFIX], own_key[b][h], own_bytes);
        memcpy(whole_value[h], prefix_value[h], prefix_bytes);
        memcpy(whole_value[h][PREFIX], own_value[b][h], own_bytes);
    }
    const int32_t length = (int32_t)(PREFIX + own_length);
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = 1, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = 1, desc.kv_length = PREFIX + MOST_OWN, desc.head_dim = HEAD_DIM;
    desc.query = rapt_input_bhsd(query[b][0], 1, QUERY_HEADS, 1, HEAD_DIM);
    desc.key = rapt_input_bhsd(whole_key[0][0], 1, KV_HEADS, PREFIX + MOST_OWN, HEAD_DIM);
    desc.value = rapt_input_bhsd(whole_value[0][0], 1, KV_HEADS, PREFIX + MOST_OWN, HEAD_DIM);
    desc.kv_lengths = rapt_int32_list(&length, 1);
    desc.out = rapt_output_bhsd(whole_out[0], 1, QUERY_HEADS, 1, HEAD_DIM);
    attend(&desc);
}

int main(void) {
    int32_t own_lengths[BATCH];
    fill(prefix_key, sizeof prefix_key), fill(prefix_value, sizeof prefix_value);
    fill(own_key, sizeof own_key), fill(own_value, sizeof own_value);
    fill(query, sizeof query);
    for (int b = 0; b < BATCH; b++) own_lengths[b] = b * 17 % (MOST_OWN + 1); /* the first has only the prefix */

    attend_prefix();
    attend_own(own_lengths);

    for (int b = 0; b < BATCH; b++) {
        attend_whole(b, own_lengths[b]);
        if (memcmp(whole_out, out[b], sizeof whole_out) != 0) {
            printf("sequence %d: with the shared prefix and with a cache of its own DIFFER\n", b);
            return 1;
        }
    }
    printf("%d sequences read a prefix of %d keys once; the same bits as with caches of their own\n", BATCH, PREFIX);
    return 0;
}
