/* SPDX-License-Identifier: MIT
 * What acts on scores: masks, biases, trees, lists of key blocks. */
#include <math.h>

#include "reference/reference.h"
#include "support/unit.h"

static void add_tree(struct unit *unit, struct random *random) {
    rapt_attention_desc *d = &unit->desc;
    const int64_t count = d->batch * d->query_length;
    uint64_t *masks = test_alloc((size_t)count * sizeof *masks + 1);
    d->tree_tokens = random_between(random, 1, 64);
    for (int64_t i = 0; i < count; i++)
        masks[i] = random_bits(random) | random_bits(random);
    d->tree_masks = rapt_int64_list((const int64_t *)masks, 0);
    d->tree_masks.stride_bytes = 8;
}

static void add_blocks(struct unit *unit, struct random *random) {
    static const int64_t tokens[] = {1, 3, 16, 64, 100, 256, 700};
    rapt_attention_desc *d = &unit->desc;
    rapt_block_list *blocks = &d->key_blocks;
    blocks->query_tokens = tokens[random_below(random, 7)];
    blocks->key_tokens = tokens[random_below(random, 7)];
    const int64_t of_head = (d->query_length + blocks->query_tokens - 1) / blocks->query_tokens;
    const int64_t key_blocks = (d->kv_length + blocks->key_tokens - 1) / blocks->key_tokens;
    blocks->head_stride = of_head;
    blocks->batch_stride = of_head * d->kv_heads;
    const int64_t lists = blocks->batch_stride * d->batch;
    int64_t *offsets = test_alloc((size_t)(lists + 1) * sizeof *offsets), count = 0;
    int64_t *entries = test_alloc((size_t)(lists * key_blocks) * sizeof *entries + 1);
    for (int64_t list = 0; list < lists; list++) {
        const int percent = (int)random_below(random, 4) * 15;
        offsets[list] = count;
        for (int64_t block = 0; block < key_blocks; block++)
            if (random_chance(random, percent))
                entries[count++] = block;
    }
    offsets[lists] = count;
    blocks->offsets = rapt_int64_list(offsets, 0);
    blocks->entries = rapt_int64_list(entries, count);
    blocks->offsets.stride_bytes = blocks->entries.stride_bytes = 8;
}

static void fill_masks(const struct unit *unit, struct random *random) {
    const rapt_attention_desc *desc = &unit->desc;
    static const int percents[] = {0, 50, 98, 100};
    const int excluded = percents[random_below(random, 4)];
    const bool zeros = random_chance(random, 50);
    const bool shared = random_chance(random, 30); /* by all rows */
    const uint64_t seed = random_bits(random);
    for (int64_t row = 0; row < desc->batch * desc->query_heads * desc->query_length; row++) {
        const int64_t query = row % desc->query_length, head = row / desc->query_length % desc->query_heads;
        const int64_t b = row / desc->query_length / desc->query_heads;
        if (shared)
            random->state = seed;
        for (int64_t key = 0; key < desc->kv_length; key++) {
            const bool far = key % 700 > 200 && random_chance(random, 98); /* uniform blocks as well */
            if (desc->mask.data)
                ((uint8_t *)(uintptr_t)unit_row(&desc->mask, b, head, query))[key] =
                    far ? excluded == 0 : !random_chance(random, excluded);
            const float bias =
                (far && excluded) || random_chance(random, excluded) ? -INFINITY : zeros ? 0.0f : random_normal(random);
            if (desc->bias.data)
                rapt_reference_store(desc->bias.dtype, &bias, 1,
                                     (char *)(uintptr_t)unit_row(&desc->bias, b, head, query) +
                                         rapt_row_bytes(desc->bias.dtype, key));
        }
    }
}

void unit_add_masks(struct unit *unit, struct random *random) {
    rapt_attention_desc *d = &unit->desc;
    rapt_tensor *const tensors[] = {&d->mask, &d->keep_mask, &d->bias};
    const int32_t bias_dtype = random_chance(random, 50) ? RAPT_F16 : RAPT_F32;
    for (int i = 0; i < 3; i++)
        if (random_chance(random, 35))
            *tensors[i] = unit_tensor(random, i < 2 ? RAPT_BOOL8 : bias_dtype, d->batch, d->query_heads,
                                      d->query_length, d->kv_length, true);
    if (d->mask.data && random_chance(random, 30))
        d->features |= RAPT_MASK_FILL;
    d->mask_fill = -3.5f;
    d->keep_scale = 1.25f;
    d->softcap = random_chance(random, 30) ? 20.0f : 0.0f;
    if (d->bias.data && random_chance(random, 50))
        d->bias_head_factor = test_drawn(random, d->query_heads, random_normal);
    if (random_chance(random, 30))
        d->alibi_slopes = test_drawn(random, d->query_heads, random_normal);
    if (random_chance(random, 30))
        add_tree(unit, random);
    if (random_chance(random, 30))
        add_blocks(unit, random);
    fill_masks(unit, random);
}
