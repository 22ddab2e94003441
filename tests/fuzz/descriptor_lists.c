/* SPDX-License-Identifier: MIT
 * Lists of a fuzzed call: the library may read one entry per sequence, or query head; so many exist, or none. */
#include <string.h>

#include "descriptor_decode.h"

static int64_t step_of(const rapt_index_list *list) {
    return list->stride_bytes ? list->stride_bytes : list->index_bytes;
}

const struct region *make_list(struct fuzzed_call *call, rapt_index_list *list, int64_t count, uint8_t way) {
    const int64_t bytes = way & 2 ? 8 : 4, step = bytes * (1 + way / 16 % 3);
    const struct region *region = add_region(call, (size_t)(count > 0 ? (count - 1) * step + bytes : 0));
    memset(region->data, 0, region->bytes);
    list->data = region->data;
    list->index_bytes = (int32_t)bytes;
    list->stride_bytes = step == bytes && way & 128 ? 0 : step;
    list->count = way & 64 ? count : 0;
    return region;
}

void put_entry(const struct region *region, const rapt_index_list *list, int64_t i, int64_t entry) {
    memcpy(region->data + i * step_of(list), &entry, (size_t)list->index_bytes);
}

void spoil_list(rapt_index_list *list, int64_t most, struct input *input) {
    static const int64_t wrong[] = {-4, 2, 6, INT64_MIN}; /* strides; valid ones have enough memory */
    const uint8_t field = take_byte(input);
    if (field % 3 == 0) {
        list->index_bytes = field % 8 == 4 ? 3 : field % 8; /* never wider than the memory */
    } else if (field % 3 == 1) {
        const int64_t count = take_hostile(input);
        list->count = count && count <= most ? count : list->count;
    } else {
        list->stride_bytes = wrong[field % 4];
    }
}

static void decode_index_list(struct fuzzed_call *call, rapt_index_list *list, int64_t last, struct input *input) {
    const uint8_t way = take_byte(input);
    const int64_t count = call->desc.batch;
    if (way % 2 == 0 || count < 0 || count > MOST_LISTED)
        return;
    const struct region *region = make_list(call, list, count, way);
    for (int64_t i = 0; i < count; i++) {
        const uint8_t choice = take_byte(input);
        put_entry(region, list, i,
                  way & 4                             ? take_hostile(input)
                  : last > 0 && last < MOST_COMPUTED ? choice * 13 % (last + 1)
                                                      : 0);
    }
    if (way & 8)
        spoil_list(list, INT64_MAX, input);
}

static void decode_head_list(struct fuzzed_call *call, const float **list, struct input *input) {
    const uint8_t way = take_byte(input);
    const int64_t count = call->desc.query_heads;
    if (way % 2 == 0 || count < 0 || count > MOST_LISTED)
        return;
    const struct region *region = add_region(call, (size_t)count * sizeof(float) + (way & 2));
    for (int64_t i = 0; i < count; i++) {
        const float x = way & 4 ? take_float(input) : (float)(i % 5) * 0.25f - 0.5f;
        memcpy(region->data + (way & 2) + i * 4, &x, sizeof x);
    }
    *list = (const float *)(void *)(region->data + (way & 2)); /* 2: misaligned */
}

void decode_call_lists(struct fuzzed_call *call, struct input *input) {
    rapt_attention_desc *d = &call->desc;
    decode_index_list(call, &d->query_lengths, d->query_length, input);
    decode_index_list(call, &d->kv_lengths, d->kv_length, input);
    decode_index_list(call, &d->query_position, 2000, input);
    decode_index_list(call, &d->key_position, 2000, input);
    decode_head_list(call, &d->bias_head_factor, input);
    decode_head_list(call, &d->alibi_slopes, input);
    decode_head_list(call, &d->sinks, input);
    decode_selection(call, input);
}
