/* SPDX-License-Identifier: MIT
 * The call in README.md: grouped-query attention, causal, on random numbers. */
#include <rapt/rapt.h>

#include <stdio.h>

enum { tokens = 100 };

static float query[8 * tokens * 64], key[2 * tokens * 64], value[2 * tokens * 64], out[8 * tokens * 64];

static void fill(float *numbers, int count) {
    static unsigned seed = 1;
    for (int i = 0; i < count; i++)
        numbers[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
}

int main(void) {
    fill(query, 8 * tokens * 64);
    fill(key, 2 * tokens * 64);
    fill(value, 2 * tokens * 64);

    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = 1, desc.query_heads = 8, desc.kv_heads = 2; /* grouped-query attention */
    desc.query_length = desc.kv_length = tokens, desc.head_dim = 64;
    desc.query = rapt_input_bhsd(query, 1, 8, tokens, 64); /* [batch, heads, tokens, dim], float32 */
    desc.key = rapt_input_bhsd(key, 1, 2, tokens, 64);
    desc.value = rapt_input_bhsd(value, 1, 2, tokens, 64);
    desc.out = rapt_output_bhsd(out, 1, 8, tokens, 64);
    desc.features = RAPT_CAUSAL; /* no query sees a later key */
    rapt_message message;
    if (rapt_attention(&desc, NULL, &message) != RAPT_OK) return fprintf(stderr, "%s\n", message.text), 1;

    printf("last token, head 0: %+.6f %+.6f %+.6f ...\n", (double)out[(tokens - 1) * 64],
           (double)out[(tokens - 1) * 64 + 1], (double)out[(tokens - 1) * 64 + 2]);
    return 0;
}
