/* SPDX-License-Identifier: MIT
 * A shared object of embed.c. Compiled with -DPART=embed_one or embed_two, and RAPT_STATIC. */
#include "process/embed_part.h"
#include "rapt/rapt.h"

static const float query[2] = {0, 0}, key[4] = {1, 2, 3, 4}, value[4] = {2, 4, 6, 8};

static rapt_attention_desc describe(float out[2]) {
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = desc.query_heads = desc.kv_heads = desc.query_length = 1;
    desc.kv_length = desc.head_dim = 2;
    desc.query = rapt_input_bhsd(query, 1, 1, 1, 2);
    desc.key = rapt_input_bhsd(key, 1, 1, 2, 2);
    desc.value = rapt_input_bhsd(value, 1, 1, 2, 2);
    desc.out = rapt_output_bhsd(out, 1, 1, 1, 2);
    return desc;
}

static int attend(float out[2]) {
    const rapt_attention_desc desc = describe(out);
    return rapt_attention(&desc, NULL, NULL);
}

static int plan(void *memory, float out[2]) {
    const rapt_attention_desc desc = describe(out);
    return rapt_plan_init(memory, &desc, NULL);
}

static int run(const void *memory) {
    static char workspace[1 << 16];
    return rapt_run(memory, workspace, sizeof workspace, NULL);
}

static const void *where(void) { return (const void *)(uintptr_t)rapt_attention; }

__attribute__((visibility("default"))) const struct embed_part PART = {attend, plan, run, where};
