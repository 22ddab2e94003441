/* SPDX-License-Identifier: MIT
 * Caches in float16 that rapt fills: each step appends new keys (rotated) and values of two sequences of different
 * lengths, rotates the queries, and attends. Finally a second cache, filled in one call, must have the same bytes. */
#include <rapt/cache.h>
#include <rapt/rapt.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 2, QUERY_HEADS = 8, KV_HEADS = 2, HEAD_DIM = 64, STEPS = 40, CAPACITY = 64 };

/* What the model's projections yield in one step: [sequences][heads][dim]. */
struct step {
    float query[SEQUENCES][QUERY_HEADS][HEAD_DIM];
    float key[SEQUENCES][KV_HEADS][HEAD_DIM];
    float value[SEQUENCES][KV_HEADS][HEAD_DIM];
};

static struct step steps[STEPS];
static uint16_t key_cache[SEQUENCES][KV_HEADS][CAPACITY][HEAD_DIM];
static uint16_t value_cache[SEQUENCES][KV_HEADS][CAPACITY][HEAD_DIM];
static uint16_t second_cache[SEQUENCES][KV_HEADS][CAPACITY][HEAD_DIM];
static float rotated[SEQUENCES][QUERY_HEADS][HEAD_DIM], out[SEQUENCES][QUERY_HEADS][HEAD_DIM];

static void require(rapt_status status, const rapt_message *message) {
    if (status == RAPT_OK)
        return;
    fprintf(stderr, "%s\n", message->text);
    exit(1);
}

/* As in Llama 3.1. */
static rapt_rotary describe_rotary(void) {
    rapt_rotary rotary = RAPT_ZERO;
    rotary.pairing = RAPT_ROTARY_HALVES;
    rotary.base = 500000;
    rotary.scaling = RAPT_ROTARY_LLAMA3;
    rotary.factor = 8;
    rotary.original_length = 8192;
    rotary.low_factor = 1, rotary.high_factor = 4;
    return rotary;
}

static void append(const struct step *step, const int32_t *positions) {
    rapt_message message;
    rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
    desc.batch = SEQUENCES, desc.kv_heads = KV_HEADS, desc.length = 1;
    desc.head_dim = HEAD_DIM, desc.cache_length = CAPACITY;
    desc.key = rapt_input_bshd(step->key[0][0], SEQUENCES, 1, KV_HEADS, HEAD_DIM);
    desc.value = rapt_input_bshd(step->value[0][0], SEQUENCES, 1, KV_HEADS, HEAD_DIM);
    desc.key_cache = rapt_tensor_bhsd(key_cache, RAPT_F16, SEQUENCES, KV_HEADS, CAPACITY, HEAD_DIM);
    desc.value_cache = rapt_tensor_bhsd(value_cache, RAPT_F16, SEQUENCES, KV_HEADS, CAPACITY, HEAD_DIM);
    desc.positions = rapt_int32_list(positions, SEQUENCES);
    desc.rotary = describe_rotary();
    require(rapt_append(&desc, NULL, &message), &message);
}

static void rotate(const struct step *step, const int32_t *positions) {
    rapt_message message;
    rapt_rotate_desc desc = RAPT_ROTATE_DESC_INIT;
    desc.batch = SEQUENCES, desc.heads = QUERY_HEADS, desc.length = 1, desc.head_dim = HEAD_DIM;
    desc.in = rapt_input_bshd(step->query[0][0], SEQUENCES, 1, QUERY_HEADS, HEAD_DIM);
    desc.out = rapt_output_bshd(rotated[0][0], SEQUENCES, 1, QUERY_HEADS, HEAD_DIM);
    desc.positions = rapt_int32_list(positions, SEQUENCES);
    desc.rotary = describe_rotary();
    require(rapt_rotate(&desc, NULL, &message), &message);
}

static void attend(const int32_t *lengths) {
    rapt_message message;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = SEQUENCES, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = 1, desc.kv_length = CAPACITY, desc.head_dim = HEAD_DIM;
    desc.query = rapt_input_bshd(rotated[0][0], SEQUENCES, 1, QUERY_HEADS, HEAD_DIM);
    desc.key = rapt_tensor_bhsd(key_cache, RAPT_F16, SEQUENCES, KV_HEADS, CAPACITY, HEAD_DIM);
    desc.value = rapt_tensor_bhsd(value_cache, RAPT_F16, SEQUENCES, KV_HEADS, CAPACITY, HEAD_DIM);
    desc.out = rapt_output_bshd(out[0][0], SEQUENCES, 1, QUERY_HEADS, HEAD_DIM);
    desc.kv_lengths = rapt_int32_list(lengths, SEQUENCES);
    require(rapt_attention(&desc, NULL, &message), &message);
}

/* Appends all keys of all steps to another cache at once: token i of sequence b is row b of step i. */
static void append_all(const int32_t *positions) {
    rapt_message message;
    rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
    desc.batch = SEQUENCES, desc.kv_heads = KV_HEADS, desc.length = STEPS;
    desc.head_dim = HEAD_DIM, desc.cache_length = CAPACITY;
    desc.key = rapt_input_bshd(steps[0].key[0][0], SEQUENCES, 1, KV_HEADS, HEAD_DIM);
    desc.key.token_stride_bytes = sizeof(struct step);
    desc.key.extent_bytes = sizeof steps - offsetof(struct step, key);
    desc.key_cache = rapt_tensor_bhsd(second_cache, RAPT_F16, SEQUENCES, KV_HEADS, CAPACITY, HEAD_DIM);
    desc.positions = rapt_int32_list(positions, SEQUENCES);
    desc.rotary = describe_rotary();
    require(rapt_append(&desc, NULL, &message), &message);
}

int main(void) {
    const int32_t begin[SEQUENCES] = {0, 20};
    int32_t positions[SEQUENCES] = {0, 20}, lengths[SEQUENCES];
    unsigned seed = 1;
    float *numbers = (float *)(void *)steps;
    for (size_t i = 0; i < sizeof steps / (sizeof(float)); i++) /* stands in for the model */
        numbers[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
    for (int i = 0; i < STEPS; i++) {
        append(&steps[i], positions);
        rotate(&steps[i], positions);
        for (int b = 0; b < SEQUENCES; b++)
            lengths[b] = positions[b] + 1; /* the new token sees itself */
        attend(lengths);
        for (int b = 0; b < SEQUENCES; b++)
            positions[b]++;
    }
    printf("%d steps; head 0 of sequence 1 gives %+.6f %+.6f ...\n", STEPS, (double)out[1][0][0], (double)out[1][0][1]);
    append_all(begin);
    if (memcmp(key_cache, second_cache, sizeof key_cache) != 0) {
        puts("the caches DIFFER");
        return 1;
    }
    puts("a cache that is filled in one call holds the same bytes");
    return 0;
}
