/* SPDX-License-Identifier: MIT
 * Caches in int8 with a scale per token and head, which rapt computes and writes beside the keys and values: 132 bytes
 * for a row of 128 numbers. The result is compared with attention over the original numbers. */
#include <rapt/cache.h>
#include <rapt/rapt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEQUENCES = 2, QUERY_HEADS = 8, KV_HEADS = 2, HEAD_DIM = 128, TOKENS = 300, CAPACITY = 320 };

typedef int8_t cache_numbers[SEQUENCES][KV_HEADS][CAPACITY][HEAD_DIM];
typedef float cache_scales[SEQUENCES][KV_HEADS][CAPACITY];

static float query[SEQUENCES][QUERY_HEADS][HEAD_DIM], out[SEQUENCES][QUERY_HEADS][HEAD_DIM];
static float key[SEQUENCES][TOKENS][KV_HEADS][HEAD_DIM], value[SEQUENCES][TOKENS][KV_HEADS][HEAD_DIM];
static cache_numbers key_numbers, value_numbers;
static cache_scales key_scales, value_scales;
static rapt_message message;

static void require(rapt_status status) {
    if (status == RAPT_OK)
        return;
    fprintf(stderr, "%s\n", message.text);
    exit(1);
}

static void fill(void *numbers, size_t bytes) {
    static unsigned seed = 1;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)numbers)[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
}

/* The same tensor is filled and read. */
static rapt_tensor describe_cache(cache_numbers numbers, cache_scales scales) {
    rapt_tensor cache = rapt_tensor_bhsd(numbers, RAPT_I8, SEQUENCES, KV_HEADS, CAPACITY, HEAD_DIM);
    cache.scale_dtype = RAPT_F32;
    cache.scales = scales; /* [sequence][head][token] */
    cache.scale_token_stride_bytes = sizeof(float);
    cache.scale_head_stride_bytes = CAPACITY * sizeof(float);
    cache.scale_batch_stride_bytes = KV_HEADS * CAPACITY * sizeof(float);
    return cache;
}

static void append(void) {
    static const int32_t positions[SEQUENCES] = {0};
    rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
    desc.batch = SEQUENCES, desc.kv_heads = KV_HEADS, desc.length = TOKENS;
    desc.head_dim = HEAD_DIM, desc.cache_length = CAPACITY;
    desc.key = rapt_input_bshd(key[0][0][0], SEQUENCES, TOKENS, KV_HEADS, HEAD_DIM);
    desc.value = rapt_input_bshd(value[0][0][0], SEQUENCES, TOKENS, KV_HEADS, HEAD_DIM);
    desc.positions = rapt_int32_list(positions, SEQUENCES);
    desc.key_cache = describe_cache(key_numbers, key_scales);
    desc.value_cache = describe_cache(value_numbers, value_scales);
    desc.features = RAPT_COMPUTE_KEY_SCALES | RAPT_COMPUTE_VALUE_SCALES;
    require(rapt_append(&desc, NULL, &message));
}

static void attend(void) {
    static const int32_t lengths[SEQUENCES] = {TOKENS, TOKENS};
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = SEQUENCES, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = 1, desc.kv_length = CAPACITY, desc.head_dim = HEAD_DIM;
    desc.query = rapt_input_bshd(query[0][0], SEQUENCES, 1, QUERY_HEADS, HEAD_DIM);
    desc.key = describe_cache(key_numbers, key_scales);
    desc.value = describe_cache(value_numbers, value_scales);
    desc.kv_lengths = rapt_int32_list(lengths, SEQUENCES);
    desc.out = rapt_output_bshd(out[0][0], SEQUENCES, 1, QUERY_HEADS, HEAD_DIM);
    require(rapt_attention(&desc, NULL, &message));
}

/* NaN, if either is. */
static double larger(double a, double b) { return isnan(a) || b <= a ? a : b; }

/* Textbook attention, in double. */
static double error_of(int b, int h) {
    static double weight[TOKENS];
    const int kv = h / (QUERY_HEADS / KV_HEADS);
    double sum = 0, worst = 0;
    for (int j = 0; j < TOKENS; j++) {
        double dot = 0;
        for (int d = 0; d < HEAD_DIM; d++)
            dot += (double)query[b][h][d] * key[b][j][kv][d];
        sum += weight[j] = exp(dot / sqrt(HEAD_DIM));
    }
    for (int d = 0; d < HEAD_DIM; d++) {
        double expected = 0;
        for (int j = 0; j < TOKENS; j++)
            expected += weight[j] / sum * value[b][j][kv][d];
        worst = larger(worst, fabs(out[b][h][d] - expected));
    }
    return worst;
}

int main(void) {
    double worst = 0;
    fill(query, sizeof query), fill(key, sizeof key), fill(value, sizeof value);
    append();
    attend();
    for (int b = 0; b < SEQUENCES; b++)
        for (int h = 0; h < QUERY_HEADS; h++)
            worst = larger(worst, error_of(b, h));
    printf("%d tokens in int8: results are at most %.1g off\n", SEQUENCES * TOKENS, worst);
    return worst > 0 && worst < 1e-3 ? 0 : 1;
}
