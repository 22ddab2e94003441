/* SPDX-License-Identifier: MIT */
#include "attend/dropout.h"

#include "common/tool.h"
#include "rapt/layers.h"

void dropout_check(struct option_number drop) {
    if (drop.given && !(drop.value >= 0 && drop.value < 1))
        tool_die("--drop: %s must be at least 0 and below 1, also when rounded to float32", drop.text);
}

rapt_tensor dropout_draw(double drop, uint64_t seed, const rapt_attention_desc *how) {
    const int64_t pairs = tool_product(how->query_length, how->kv_length, "--drop");
    const int64_t each = tool_product(pairs, how->query_heads, "--drop");
    const int64_t count = tool_product(each, how->batch, "--drop");
    unsigned char *keep = tool_allocate(count, 1, "--drop");
    if (rapt_dropout_keep(keep, count, drop, seed, 0, 0) != RAPT_OK) tool_die("--drop");
    return rapt_bool_mask(keep, each, pairs, how->kv_length);
}
