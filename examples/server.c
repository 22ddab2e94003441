/* SPDX-License-Identifier: MIT
 * A server's loop: sequences of different lengths in one batch, one workspace for all steps, and per step one plan for
 * all layers. docs/embedding.md shows these lines. */
#include <rapt/rapt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, BATCH = 4, QUERY_HEADS = 8, KV_HEADS = 2, HEAD_DIM = 64, CAPACITY = 256, STEPS = 5 };

/* Caches [batch][head][token][dim], one per layer. A step reads one new query per sequence. */
static float key_cache[LAYERS][BATCH][KV_HEADS][CAPACITY][HEAD_DIM];
static float value_cache[LAYERS][BATCH][KV_HEADS][CAPACITY][HEAD_DIM];
static float query[LAYERS][BATCH][QUERY_HEADS][1][HEAD_DIM];
static float out[LAYERS][BATCH][QUERY_HEADS][1][HEAD_DIM];
static float alone[QUERY_HEADS][1][HEAD_DIM];
static rapt_message message;

static void require(rapt_status status) {
    if (status == RAPT_OK) return;
    fprintf(stderr, "%s\n", message.text[0] ? message.text : rapt_status_text(status));
    exit(1);
}

static void fill(float *numbers, size_t count) {
    static unsigned seed = 1;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
}

/* One decode step of `batch` sequences: shapes and lengths, no data. */
static rapt_attention_desc describe_step(int64_t batch, const int32_t *lengths) {
    rapt_attention_desc step = RAPT_ATTENTION_DESC_INIT;
    step.batch = batch, step.query_heads = QUERY_HEADS, step.kv_heads = KV_HEADS;
    step.query_length = 1, step.kv_length = CAPACITY, step.head_dim = HEAD_DIM;
    step.query = rapt_input_bhsd(NULL, batch, QUERY_HEADS, 1, HEAD_DIM);
    step.key = rapt_input_bhsd(NULL, batch, KV_HEADS, CAPACITY, HEAD_DIM);
    step.value = rapt_input_bhsd(NULL, batch, KV_HEADS, CAPACITY, HEAD_DIM);
    step.out = rapt_output_bhsd(NULL, batch, QUERY_HEADS, 1, HEAD_DIM);
    step.kv_lengths = rapt_int32_list(lengths, batch); /* how much of each cache is filled */
    step.features = RAPT_CAUSAL;
    step.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT; /* the last query of a sequence is at its last key */
    return step;
}

/* The third sequence of the last layer alone must give the same bits. */
static void check_alone(const int32_t *lengths) {
    rapt_attention_desc desc = describe_step(1, lengths + 2);
    desc.query.data = query[LAYERS - 1][2];
    desc.key.data = key_cache[LAYERS - 1][2];
    desc.value.data = value_cache[LAYERS - 1][2];
    desc.out.data = alone;
    require(rapt_attention(&desc, NULL, &message));
    if (memcmp(alone, out[LAYERS - 1][2], sizeof alone) != 0) {
        puts("alone and in the batch DIFFER");
        exit(1);
    }
}

int main(void) {
    int32_t lengths[BATCH] = {7, 100, 250, 33};
    fill(key_cache[0][0][0][0], sizeof key_cache / sizeof(float));
    fill(value_cache[0][0][0][0], sizeof value_cache / sizeof(float));

    /* At the start: a workspace large enough for every step. */
    rapt_attention_desc largest = describe_step(BATCH, lengths);
    int64_t threads = rapt_openmp_threads() > 0 ? rapt_openmp_threads() : 1;
    size_t bytes;
    require(rapt_workspace_bound(&largest, threads, &bytes, &message));
    void *workspace = malloc(bytes);
    if (!workspace) return 1;

    for (int number = 0; number < STEPS; number++) {
        fill(query[0][0][0][0], sizeof query / sizeof(float));
        /* In each step: one plan, bound to the memory of each layer in turn. */
        rapt_plan plan;
        rapt_attention_desc step = describe_step(BATCH, lengths);
        require(rapt_plan_init(&plan, &step, &message));
        for (int layer = 0; layer < LAYERS; layer++) {
            rapt_bindings memory = RAPT_BINDINGS_INIT;
            memory.query = rapt_input_buffer(query[layer], sizeof query[layer]);
            memory.key = rapt_input_buffer(key_cache[layer], sizeof key_cache[layer]);
            memory.value = rapt_input_buffer(value_cache[layer], sizeof value_cache[layer]);
            memory.out = rapt_output_buffer(out[layer], sizeof out[layer]);
            require(rapt_plan_bind(&plan, &memory, &message));
            require(rapt_run(&plan, workspace, bytes, NULL));
        }
        check_alone(lengths);
        for (int i = 0; i < BATCH; i++) lengths[i]++; /* the caches grow by a token */
    }
    printf("%d steps of %d sequences through %d layers; alone and in the batch the same bits\n", STEPS, BATCH, LAYERS);
    free(workspace);
    return 0;
}
