/* SPDX-License-Identifier: MIT
 * Trees and lists of key blocks of a fuzzed call. */
#include <string.h>

#include "descriptor_decode.h"

enum { MOST_ENTRIES = 4096 };

/* Memory of exactly the stated count. */
static const struct region *decode_indices(struct fuzzed_call *call, rapt_index_list *list, int64_t count,
                                           uint8_t way) {
    list->index_bytes = way & 2 ? 8 : 4;
    list->count = count;
    const struct region *region = add_region(call, (size_t)(count * list->index_bytes));
    memset(region->data, 0, region->bytes);
    list->data = region->data;
    return region;
}

static void set_entry(const struct region *region, const rapt_index_list *list, int64_t i, int64_t entry) {
    memcpy(region->data + i * list->index_bytes, &entry, (size_t)list->index_bytes);
}

static void decode_tree(struct fuzzed_call *call, struct input *input) {
    rapt_attention_desc *d = &call->desc;
    const uint8_t way = take_byte(input), tokens = take_byte(input);
    if (way % 4 == 0 || d->batch < 0 || d->batch > MOST_ENTRIES || d->query_length < 0 ||
        d->query_length > MOST_ENTRIES)
        return;
    const int64_t count = d->query_offsets.data ? d->query_tokens : d->batch * d->query_length;
    if (count < 0 || count > MOST_ENTRIES)
        return;
    const struct region *region = decode_indices(call, &d->tree_masks, count, way);
    for (int64_t i = 0; i < count; i++)
        set_entry(region, &d->tree_masks, i, (int64_t)(take_word(input) | (way & 8 ? UINT64_C(1) << 40 : 0)));
    d->tree_tokens = way & 128 ? take_hostile(input) : tokens % 70;
    if (way & 64)
        d->tree_masks.count = take_hostile(input);
}

static void decode_blocks(struct fuzzed_call *call, struct input *input) {
    static const int64_t tokens[] = {1, 2, 7, 16, 64, 100, 256, INT64_MAX};
    rapt_block_list *blocks = &call->desc.key_blocks;
    const uint8_t way = take_byte(input), sizes = take_byte(input), numbers = take_byte(input);
    if (way % 4 == 0)
        return;
    blocks->query_tokens = tokens[sizes % 8];
    blocks->key_tokens = tokens[sizes / 8 % 8];
    blocks->batch_stride = way & 4 ? numbers % 8 : 0;
    blocks->head_stride = way & 8 ? numbers / 8 % 4 : 0;
    const int64_t offsets = 2 + numbers % 32, entries = numbers / 16;
    const struct region *at = decode_indices(call, &blocks->offsets, offsets, way);
    const struct region *of = decode_indices(call, &blocks->entries, entries, way / 2);
    for (int64_t i = 0, offset = 0; i < offsets; i++) {
        const uint8_t step = take_byte(input);
        offset += step % 3 < entries - offset ? step % 3 : 0;
        set_entry(at, &blocks->offsets, i, step > 250 ? take_hostile(input) : offset);
    }
    for (int64_t i = 0, entry = 0; i < entries; i++) {
        const uint8_t step = take_byte(input);
        entry = step & 64 ? 0 : entry + step % 4;
        set_entry(of, &blocks->entries, i, step > 250 ? take_hostile(input) : entry);
    }
    int64_t *const fields[] = {&blocks->query_tokens, &blocks->key_tokens, &blocks->batch_stride, &blocks->head_stride,
                               &blocks->entries.count, &blocks->offsets.count};
    if (way & 64) {
        const uint8_t field = take_byte(input) % 6;
        const int64_t hostile = take_hostile(input);
        if (field < 4 || hostile <= (field == 4 ? entries : offsets)) /* no count beyond the memory */
            *fields[field] = hostile;
    }
    if (blocks->offsets.count == 0)
        blocks->offsets.count = offsets;
}

void decode_selection(struct fuzzed_call *call, struct input *input) {
    decode_tree(call, input);
    decode_blocks(call, input);
}
