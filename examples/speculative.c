/* SPDX-License-Identifier: MIT
 * Speculative decoding with a tree: a draft model proposes several continuations with common beginnings, and one call
 * verifies all. Each proposed token sees the text so far and its own ancestors. */
#include <rapt/rapt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 2, QUERY_HEADS = 8, KV_HEADS = 2, DIM = 64, TREE = 8, CAPACITY = 600 };

/* The parent of each token of the tree; -1 is the text's last token. Ancestors come first. */
static const int parents[TREE] = {-1, 0, 0, 1, 1, 2, 5, -1};

static float key[BATCH][CAPACITY][KV_HEADS][DIM], value[BATCH][CAPACITY][KV_HEADS][DIM];
static float query[BATCH][TREE][QUERY_HEADS][DIM], out[BATCH][TREE][QUERY_HEADS][DIM];
static rapt_message message;

static void fill(void *numbers, size_t bytes) {
    static unsigned seed = 1;
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        ((float *)numbers)[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
}

/* The tree's keys and values are the last of each cache. */
static void verify(const int32_t *lengths) {
    int64_t masks[BATCH][TREE];
    for (int i = 0; i < TREE; i++) {
        const int64_t of_parent = parents[i] < 0 ? 0 : masks[0][parents[i]];
        for (int b = 0; b < BATCH; b++) masks[b][i] = of_parent | (int64_t)1 << i; /* its ancestors and itself */
    }
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = BATCH, desc.query_heads = QUERY_HEADS, desc.kv_heads = KV_HEADS;
    desc.query_length = TREE, desc.kv_length = CAPACITY, desc.head_dim = DIM;
    desc.query = rapt_input_bshd(query[0][0][0], BATCH, TREE, QUERY_HEADS, DIM);
    desc.key = rapt_input_bshd(key[0][0][0], BATCH, CAPACITY, KV_HEADS, DIM);
    desc.value = rapt_input_bshd(value[0][0][0], BATCH, CAPACITY, KV_HEADS, DIM);
    desc.kv_lengths = rapt_int32_list(lengths, BATCH);
    desc.tree_masks = rapt_int64_list(masks[0], BATCH * TREE);
    desc.tree_tokens = TREE;
    desc.out = rapt_output_bshd(out[0][0][0], BATCH, TREE, QUERY_HEADS, DIM);
    if (rapt_attention(&desc, NULL, &message) == RAPT_OK) return;
    fprintf(stderr, "%s\n", message.text);
    exit(1);
}

/* The places in the cache of the text, and of token i of the tree with its ancestors; returns how many. */
static int path_to(int i, int text, int *path) {
    int count = parents[i] < 0 ? text : path_to(parents[i], text, path);
    for (int j = 0; parents[i] < 0 && j < text; j++) path[j] = j;
    path[count] = text + i;
    return count + 1;
}

/* NaN, if either is. */
static double larger(double a, double b) { return isnan(a) || b <= a ? a : b; }

/* Textbook attention, in double, over such a path alone. */
static double error_of(int b, int i, int h, int text) {
    static double weight[CAPACITY];
    static int path[CAPACITY];
    const int group = QUERY_HEADS / KV_HEADS, keys = path_to(i, text, path);
    double sum = 0, worst = 0;
    for (int j = 0; j < keys; j++) {
        double dot = 0;
        for (int d = 0; d < DIM; d++) dot += (double)query[b][i][h][d] * key[b][path[j]][h / group][d];
        sum += weight[j] = exp(dot / sqrt(DIM));
    }
    for (int d = 0; d < DIM; d++) {
        double expected = 0;
        for (int j = 0; j < keys; j++) expected += weight[j] / sum * value[b][path[j]][h / group][d];
        worst = larger(worst, fabs(out[b][i][h][d] - expected));
    }
    return worst;
}

int main(void) {
    const int text[BATCH] = {509, 90};
    const int32_t lengths[BATCH] = {509 + TREE, 90 + TREE};
    double worst = 0;
    fill(key, sizeof key), fill(value, sizeof value), fill(query, sizeof query);
    verify(lengths);
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < TREE; i++)
            for (int h = 0; h < QUERY_HEADS; h++) worst = larger(worst, error_of(b, i, h, text[b]));
    printf("%d proposed tokens of %d sequences verified in one call; at most %.1g off\n", BATCH * TREE, BATCH, worst);
    return worst > 0 && worst < 1e-5 ? 0 : 1;
}
