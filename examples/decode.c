/* SPDX-License-Identifier: MIT
 * A language model's loop: one prefill over the prompt, then token by token against a growing key/value cache. Finally
 * a single prefill processes the same tokens, and every row must have the same bits. */
#include <rapt/rapt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERY_HEADS = 8, KV_HEADS = 2, HEAD_DIM = 64, PROMPT = 300, TOKENS = 340, CAPACITY = 512 };

/* [heads][tokens][dim]; the caches have room for CAPACITY tokens. */
static float query[QUERY_HEADS][TOKENS][HEAD_DIM];
static float key_cache[KV_HEADS][CAPACITY][HEAD_DIM];
static float value_cache[KV_HEADS][CAPACITY][HEAD_DIM];
static float decoded[QUERY_HEADS][TOKENS][HEAD_DIM];
static float prefilled[QUERY_HEADS][TOKENS][HEAD_DIM];

/* Stands in for a model's projections: any numbers do. */
static void project(int token) {
    static unsigned seed = 1;
    for (int dim = 0; dim < HEAD_DIM; dim++) {
        for (int head = 0; head < QUERY_HEADS; head++)
            query[head][token][dim] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
        for (int head = 0; head < KV_HEADS; head++) {
            key_cache[head][token][dim] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
            value_cache[head][token][dim] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
        }
    }
}

/* Attention of the queries [first, end) over the keys [0, end). The cache is only partly filled: strides come from
 * CAPACITY, kv_length from end. */
static rapt_attention_desc describe(float (*out)[TOKENS][HEAD_DIM], int first, int end) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = 1;
    desc.query_heads = QUERY_HEADS;
    desc.kv_heads = KV_HEADS;
    desc.query_length = end - first;
    desc.kv_length = end;
    desc.head_dim = HEAD_DIM;
    desc.query = rapt_input_bhsd(query[0][first], 1, QUERY_HEADS, TOKENS, HEAD_DIM);
    desc.key = rapt_input_bhsd(key_cache[0][0], 1, KV_HEADS, CAPACITY, HEAD_DIM);
    desc.value = rapt_input_bhsd(value_cache[0][0], 1, KV_HEADS, CAPACITY, HEAD_DIM);
    desc.out = rapt_output_bhsd(out[0][first], 1, QUERY_HEADS, TOKENS, HEAD_DIM);
    desc.query.extent_bytes -= (int64_t)sizeof query[0][0] * first; /* they begin at token first */
    desc.out.extent_bytes -= (int64_t)sizeof out[0][0] * first;
    desc.features = RAPT_CAUSAL;
    desc.query_origin = RAPT_ORIGIN_BOTTOM_RIGHT; /* the last query is at the last key */
    return desc;
}

/* A plan lives on the stack and costs little; the workspace is kept and grows if a plan requires more. */
static void attend(const rapt_attention_desc *desc) {
    static void *workspace;
    static size_t workspace_bytes;
    rapt_plan plan;
    rapt_message message;
    size_t bytes;
    if (rapt_plan_init(&plan, desc, &message) != RAPT_OK) {
        fprintf(stderr, "%s\n", message.text);
        exit(1);
    }
    rapt_status status = rapt_plan_workspace_bytes(&plan, rapt_run_concurrency(&plan, NULL), &bytes);
    if (status == RAPT_OK && bytes > workspace_bytes) {
        free(workspace);
        workspace = malloc(bytes);
        workspace_bytes = workspace ? bytes : 0;
    }
    if (status == RAPT_OK)
        status = rapt_run(&plan, workspace, workspace_bytes, NULL);
    if (status != RAPT_OK) {
        fprintf(stderr, "%s\n", rapt_status_text(status));
        exit(1);
    }
}

int main(void) {
    for (int token = 0; token < PROMPT; token++)
        project(token);
    rapt_attention_desc desc = describe(decoded, 0, PROMPT);
    attend(&desc);
    printf("prefill: %d tokens\n", PROMPT);

    for (int token = PROMPT; token < TOKENS; token++) {
        project(token); /* appends to the cache */
        desc = describe(decoded, token, token + 1);
        attend(&desc);
        if (token % 10 == 9)
            printf("decode:  token %d sees %d keys, head 0 gives %+.6f %+.6f ...\n", token, token + 1,
                   (double)decoded[0][token][0], (double)decoded[0][token][1]);
    }

    desc = describe(prefilled, 0, TOKENS);
    attend(&desc);
    if (memcmp(decoded, prefilled, sizeof decoded) != 0) {
        puts("decode and prefill DIFFER");
        return 1;
    }
    printf("one prefill of all %d tokens gives the same bits in all %d rows\n", TOKENS, TOKENS * QUERY_HEADS);
    return 0;
}
