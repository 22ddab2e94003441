/* SPDX-License-Identifier: MIT
 * A decode loop over a paged cache: sequences take pages from one pool as they grow; each step appends a key and a
 * value per sequence, as float16, and attends. */
#include <rapt/cache.h>
#include <rapt/rapt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, QUERY_HEADS = 8, KV_HEADS = 2, DIM = 64, STEPS = 40, MOST_TOKENS = 100 };
enum { PAGE_TOKENS = 16, PAGES = 24, MOST_PAGES = (MOST_TOKENS + PAGE_TOKENS - 1) / PAGE_TOKENS };

/* The pools, [page][head][token][dim], and each sequence's pages. */
static uint16_t key_pool[PAGES][KV_HEADS][PAGE_TOKENS][DIM], value_pool[PAGES][KV_HEADS][PAGE_TOKENS][DIM];
static int32_t tables[BATCH][MOST_PAGES], lengths[BATCH];
static int free_pages[PAGES], free_count;

/* From a model: all keys and values so far, for the check, and a step's queries. */
static float key[BATCH][MOST_TOKENS][KV_HEADS][DIM], value[BATCH][MOST_TOKENS][KV_HEADS][DIM];
static float query[BATCH][QUERY_HEADS][DIM], out[BATCH][QUERY_HEADS][DIM];
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

static rapt_tensor pool_of(void *pool) {
    rapt_tensor tensor = {0};
    tensor.data = pool, tensor.dtype = RAPT_F16;
    tensor.token_stride_bytes = sizeof key_pool[0][0][0];
    tensor.head_stride_bytes = sizeof key_pool[0][0];
    tensor.page_stride_bytes = sizeof key_pool[0];
    tensor.extent_bytes = sizeof key_pool;
    return tensor;
}

static rapt_page_table page_table(void) {
    rapt_page_table table = {0};
    table.kind = RAPT_PAGES_DENSE;
    table.page_tokens = PAGE_TOKENS, table.pages = PAGES;
    table.entries = rapt_int32_list(tables[0], MOST_PAGES);
    table.batch_stride_bytes = sizeof tables[0];
    return table;
}

/* Adds up to `count` tokens to every sequence: the pages they require, and a slot in them for each token. */
static void append(int count, const int32_t *counts) {
    static float new_key[BATCH * MOST_TOKENS][KV_HEADS][DIM], new_value[BATCH * MOST_TOKENS][KV_HEADS][DIM];
    int64_t slots[BATCH * MOST_TOKENS];
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < count; i++) {
            const int at = lengths[b] + i, token = b * count + i;
            slots[token] = -1; /* it has fewer new tokens than others */
            if (i >= counts[b]) continue;
            if (at % PAGE_TOKENS == 0) tables[b][at / PAGE_TOKENS] = free_pages[--free_count];
            slots[token] = (int64_t)tables[b][at / PAGE_TOKENS] * PAGE_TOKENS + at % PAGE_TOKENS;
            memcpy(new_key[token], key[b][at], sizeof new_key[token]);
            memcpy(new_value[token], value[b][at], sizeof new_value[token]);
        }
    rapt_append_desc desc = RAPT_APPEND_DESC_INIT;
    desc.batch = BATCH, desc.kv_heads = KV_HEADS, desc.length = count, desc.head_dim = DIM;
    desc.key = rapt_input_bshd(new_key[0][0], BATCH, count, KV_HEADS, DIM);
    desc.value = rapt_input_bshd(new_value[0][0], BATCH, count, KV_HEADS, DIM);
    desc.key_cache = pool_of(key_pool), desc.value_cache = pool_of(value_pool);
    desc.pages.page_tokens = PAGE_TOKENS, desc.pages.pages = PAGES;
    desc.slots = rapt_int64_list(slots, BATCH * count);
    require(rapt_append(&desc, NULL, &message));
    for (int b = 0; b < BATCH; b++) lengths[b] += counts[b];
}

static void attend(void) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = BATCH, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = 1, desc.kv_length = MOST_TOKENS, desc.head_dim = DIM;
    desc.query = rapt_input_bhsd(query[0][0], BATCH, QUERY_HEADS, 1, DIM);
    desc.key = pool_of(key_pool), desc.value = pool_of(value_pool);
    desc.key_pages = desc.value_pages = page_table();
    desc.kv_lengths = rapt_int32_list(lengths, BATCH);
    desc.out = rapt_output_bhsd(out[0][0], BATCH, QUERY_HEADS, 1, DIM);
    require(rapt_attention(&desc, NULL, &message));
}

/* NaN, if either is. */
static double larger(double a, double b) { return isnan(a) || b <= a ? a : b; }

/* Textbook attention, in double, on the keys and values before rounding to float16. */
static double error_of(int b, int h) {
    static double weight[MOST_TOKENS];
    const int group = QUERY_HEADS / KV_HEADS;
    double sum = 0, worst = 0;
    for (int j = 0; j < lengths[b]; j++) {
        double dot = 0;
        for (int d = 0; d < DIM; d++) dot += (double)query[b][h][d] * key[b][j][h / group][d];
        sum += weight[j] = exp(dot / sqrt(DIM));
    }
    for (int d = 0; d < DIM; d++) {
        double expected = 0;
        for (int j = 0; j < lengths[b]; j++) expected += weight[j] / sum * value[b][j][h / group][d];
        worst = larger(worst, fabs(out[b][h][d] - expected));
    }
    return worst;
}

int main(void) {
    const int32_t prompts[BATCH] = {5, 33, 17}, ones[BATCH] = {1, 1, 1};
    double worst = 0;
    for (int page = 0; page < PAGES; page++) free_pages[free_count++] = page * 7 % PAGES; /* shuffled */
    fill(key, sizeof key), fill(value, sizeof value);
    append(33, prompts);
    for (int step = 0; step < STEPS; step++) {
        fill(query, sizeof query);
        append(1, ones);
        attend();
        for (int b = 0; b < BATCH; b++)
            for (int h = 0; h < QUERY_HEADS; h++) worst = larger(worst, error_of(b, h));
    }
    printf("%d steps of %d sequences, %d of %d pages in use; at most %.1g off\n", STEPS, BATCH,
           PAGES - free_count, PAGES, worst);
    return worst > 0 && worst < 1e-3 ? 0 : 1;
}
