/* SPDX-License-Identifier: MIT
 * One step of a server: prompts, parts of prompts, decode steps and drafts to verify, all in one call. Their new tokens
 * are packed, their keys in pages of one pool. */
#include <rapt/cache.h>
#include <rapt/rapt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 6, QUERY_HEADS = 8, KV_HEADS = 2, DIM = 64, MOST_NEW = 70, MOST_KEYS = 260 };
enum { PAGE_TOKENS = 16, PAGES = 64 };

/* A prompt, two decode steps, part of a prompt, a draft of 4 tokens, an idle sequence. */
static const int32_t earlier[BATCH] = {0, 200, 33, 96, 150, 20}, fresh[BATCH] = {70, 1, 1, 48, 4, 0};

static float key_pool[PAGES][KV_HEADS][PAGE_TOKENS][DIM], value_pool[PAGES][KV_HEADS][PAGE_TOKENS][DIM];
static float key[BATCH][MOST_KEYS][KV_HEADS][DIM], value[BATCH][MOST_KEYS][KV_HEADS][DIM]; /* from a model */
static float query[BATCH * MOST_NEW][QUERY_HEADS][DIM], out[BATCH * MOST_NEW][QUERY_HEADS][DIM];
static float alone[MOST_NEW][QUERY_HEADS][DIM];
static int32_t offsets[BATCH + 1], lengths[BATCH], pages[PAGES], first_page[BATCH + 1];
static rapt_message message;

static void require(rapt_status status) {
    if (status == RAPT_OK) return;
    fprintf(stderr, "%s\n", message.text);
    exit(1);
}

static void fill(void *numbers, size_t bytes) {
    static unsigned seed = 1;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)numbers)[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
}

/* The sequences' page lists, one after another, each as long as its sequence requires. */
static void take_pages(void) {
    int count = 0;
    for (int b = 0; b < BATCH; b++) {
        lengths[b] = earlier[b] + fresh[b];
        offsets[b + 1] = offsets[b] + fresh[b];
        first_page[b] = count;
        for (int page = 0; page * PAGE_TOKENS < lengths[b]; page++, count++) pages[count] = count * 27 % PAGES;
    }
    first_page[BATCH] = count;
}

static rapt_tensor pool_of(float (*pool)[KV_HEADS][PAGE_TOKENS][DIM]) {
    rapt_tensor tensor = {0};
    tensor.data = pool, tensor.dtype = RAPT_F32;
    tensor.token_stride_bytes = sizeof pool[0][0][0];
    tensor.head_stride_bytes = sizeof pool[0][0];
    tensor.page_stride_bytes = sizeof pool[0];
    tensor.extent_bytes = sizeof key_pool;
    return tensor;
}

static rapt_page_table page_table(void) {
    rapt_page_table table = {0};
    table.kind = RAPT_PAGES_LISTED;
    table.page_tokens = PAGE_TOKENS, table.pages = PAGES;
    table.entries = rapt_int32_list(pages, first_page[BATCH]);
    table.offsets = rapt_int32_list(first_page, BATCH + 1);
    return table;
}

/* Appends everything so far, in a single call: each token has a slot in a page of its sequence. */
static void append_all(void) {
    static int64_t slots[BATCH][MOST_KEYS];
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < MOST_KEYS; i++)
            slots[b][i] = i < lengths[b] ? pages[first_page[b] + i / PAGE_TOKENS] * PAGE_TOKENS + i % PAGE_TOKENS : -1;
    rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
    desc.batch = BATCH, desc.kv_heads = KV_HEADS, desc.length = MOST_KEYS, desc.head_dim = DIM;
    desc.key = rapt_input_bshd(key[0][0][0], BATCH, MOST_KEYS, KV_HEADS, DIM);
    desc.value = rapt_input_bshd(value[0][0][0], BATCH, MOST_KEYS, KV_HEADS, DIM);
    desc.key_cache = pool_of(key_pool), desc.value_cache = pool_of(value_pool);
    desc.pages.page_tokens = PAGE_TOKENS, desc.pages.pages = PAGES;
    desc.slots = rapt_int64_list(slots[0], BATCH * MOST_KEYS);
    require(rapt_append(&desc, NULL, &message));
}

static void attend_all(void) {
    const int64_t tokens = offsets[BATCH];
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = BATCH, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = MOST_NEW, desc.kv_length = MOST_KEYS, desc.head_dim = DIM;
    desc.query = rapt_input_bshd(query[0][0], 1, tokens, QUERY_HEADS, DIM);
    desc.out = rapt_output_bshd(out[0][0], 1, tokens, QUERY_HEADS, DIM);
    desc.query_tokens = tokens;
    desc.query_offsets = rapt_int32_list(offsets, BATCH + 1);
    desc.key = pool_of(key_pool), desc.value = pool_of(value_pool);
    desc.key_pages = desc.value_pages = page_table();
    desc.kv_lengths = rapt_int32_list(lengths, BATCH);
    desc.features = RAPT_CAUSAL;
    desc.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT; /* the new tokens are the last of their sequence */
    require(rapt_attention(&desc, NULL, &message));
}

/* One sequence alone, its keys not in pages. */
static void attend_alone(int b) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = 1, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = fresh[b], desc.kv_length = lengths[b], desc.head_dim = DIM;
    desc.query = rapt_input_bshd(query[offsets[b]][0], 1, fresh[b], QUERY_HEADS, DIM);
    desc.key = rapt_input_bshd(key[b][0][0], 1, lengths[b], KV_HEADS, DIM);
    desc.value = rapt_input_bshd(value[b][0][0], 1, lengths[b], KV_HEADS, DIM);
    desc.out = rapt_output_bshd(alone[0][0], 1, fresh[b], QUERY_HEADS, DIM);
    desc.features = RAPT_CAUSAL;
    desc.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT;
    require(rapt_attention(&desc, NULL, &message));
}

/* NaN, if either is. */
static double larger(double a, double b) { return isnan(a) || b <= a ? a : b; }

/* Textbook attention, in double. */
static double error_of(int b, int i, int h) {
    static double weight[MOST_KEYS];
    const int group = QUERY_HEADS / KV_HEADS, row = offsets[b] + i, keys = earlier[b] + i + 1;
    double sum = 0, worst = 0;
    for (int j = 0; j < keys; j++) {
        double dot = 0;
        for (int d = 0; d < DIM; d++) dot += (double)query[row][h][d] * key[b][j][h / group][d];
        sum += weight[j] = exp(dot / sqrt(DIM));
    }
    for (int d = 0; d < DIM; d++) {
        double expected = 0;
        for (int j = 0; j < keys; j++) expected += weight[j] / sum * value[b][j][h / group][d];
        worst = larger(worst, fabs(out[row][h][d] - expected));
    }
    return worst;
}

int main(void) {
    double worst = 0;
    fill(key, sizeof key), fill(value, sizeof value), fill(query, sizeof query);
    take_pages();
    append_all();
    attend_all();
    for (int b = 0; b < BATCH; b++) {
        attend_alone(b);
        if (memcmp(alone, out[offsets[b]], (size_t)fresh[b] * sizeof alone[0]) != 0) {
            printf("sequence %d: alone and in the batch DIFFER\n", b);
            return 1;
        }
        for (int i = 0; i < fresh[b]; i++)
            for (int h = 0; h < QUERY_HEADS; h++) worst = larger(worst, error_of(b, i, h));
    }
    printf("%d new tokens of %d sequences in one call; alone and in the batch the same bits; at most %.1g off\n",
           (int)offsets[BATCH], BATCH, worst);
    return worst > 0 && worst < 1e-5 ? 0 : 1;
}
