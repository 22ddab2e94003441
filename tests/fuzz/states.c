/* SPDX-License-Identifier: MIT
 * Merging of states, valid and hostile: a status with a text and no byte written, or the reference's bits; and nothing
 * accessed outside the memory that the call describes. */
#include <stdlib.h>
#include <string.h>

#include "descriptor_run.h"
#include "rapt/states.h"
#include "reference/reference.h"

enum { MOST_FLOATS = 1 << 14, STATES = 4 };

struct merging {
    struct fuzzed_call memory; /* its regions, and no descriptor */
    rapt_states_desc desc;
    const rapt_states_desc *given; /* struct_size bytes */
    rapt_tensor *states;
};

static int64_t *stride_of(rapt_tensor *tensor, int dim) {
    int64_t *const strides[3] = {&tensor->batch_stride_bytes, &tensor->head_stride_bytes, &tensor->token_stride_bytes};
    return strides[dim];
}

/* Rows with gaps in memory of exactly that size; false if that is too large. */
static bool lay_out(struct merging *m, rapt_tensor *tensor, int64_t floats, uint8_t style, uint8_t content) {
    const int64_t sizes[3] = {m->desc.batch, m->desc.query_heads, m->desc.query_length};
    int64_t last = 0;
    if (floats < 0 || floats > MOST_FLOATS)
        return false;
    int64_t span = floats + style % 3;
    for (int dim = 2; dim >= 0; dim--) {
        if (sizes[dim] < 0 || sizes[dim] > MOST_FLOATS || span * sizes[dim] > MOST_FLOATS)
            return false;
        *stride_of(tensor, dim) = 4 * span;
        last += sizes[dim] ? (sizes[dim] - 1) * span : 0;
        span *= sizes[dim] ? sizes[dim] : 1;
    }
    const bool is_empty = !sizes[0] || !sizes[1] || !sizes[2];
    const struct region *region = add_region(&m->memory, is_empty ? 0 : (size_t)(4 * (last + floats)));
    fill(region, RAPT_F32, content);
    for (size_t i = 0; content & 64 && i + 4 <= region->bytes; i += 4) { /* then most rows are states */
        const float x = (float)((i / 4 + content) * 7 % 5) * 2;
        memcpy(region->data + i, &x, sizeof x);
    }
    tensor->data = region->data;
    tensor->extent_bytes = style & 4 ? (int64_t)region->bytes : 0;
    return true;
}

enum { WAY_STATED = 2, WAY_SAME = 4, WAY_WORD = 8 };

static void decode_tensor(struct merging *m, rapt_tensor *tensor, int64_t floats, struct input *input) {
    const uint8_t way = take_byte(input), style = take_byte(input), content = take_byte(input);
    tensor->dtype = RAPT_F32;
    if (way & WAY_SAME && m->states && tensor != m->states) {
        const bool counted = m->desc.count > 0 && m->desc.count <= STATES;
        /* In place, or next to it; nobody checks the strides of a state that is not read. */
        *tensor = m->states[style % (counted ? m->desc.count : 1)];
        if (content & 1)
            tensor->data = (char *)tensor->data + 4;
        tensor->extent_bytes = 0;
        if (content & 1 || tensor->data == NULL)
            *tensor = m->states[0];
    } else if (way & WAY_STATED || !lay_out(m, tensor, floats, style, content)) {
        const struct region *region = add_region(&m->memory, 400);
        fill(region, RAPT_F32, content);
        tensor->data = region->data + style % 16;
        tensor->extent_bytes = (int64_t)region->bytes - style % 16;
        for (int dim = 0; dim < 3; dim++)
            *stride_of(tensor, dim) = take_byte(input) % 2 ? take_hostile(input) : 4 * (int64_t)take_byte(input);
    }
    if (way & WAY_WORD && tensor->extent_bytes > 0) { /* one word after data, and not a larger extent */
        const size_t first = offsetof(rapt_tensor, data) + sizeof tensor->data;
        const size_t at = first + 8 * (take_byte(input) % ((sizeof *tensor - first) / 8));
        const int64_t hostile = take_hostile(input);
        if (at != offsetof(rapt_tensor, extent_bytes))
            memcpy((char *)tensor + at, &hostile, 8);
    }
}

static void decode_lists(struct merging *m, struct input *input) {
    rapt_states_desc *d = &m->desc;
    const uint8_t way = take_byte(input);
    if (way & 1 && d->batch >= 0 && d->batch < 100) {
        const struct region *region = add_region(&m->memory, (size_t)d->batch * 4);
        for (int64_t b = 0; b < d->batch; b++) {
            const int32_t length = way & 4 ? (int32_t)take_hostile(input) : take_byte(input) % 8;
            memcpy(region->data + 4 * b, &length, 4);
        }
        d->query_lengths = rapt_int32_list((const int32_t *)(void *)region->data, way & 8 ? take_hostile(input) : 0);
    }
    if (way & 2 && d->query_heads >= 0 && d->query_heads < 100) {
        const struct region *region = add_region(&m->memory, (size_t)d->query_heads * 4);
        for (int64_t h = 0; h < d->query_heads; h++) {
            const float x = way & 16 ? take_float(input) : (float)h - 1;
            memcpy(region->data + 4 * h, &x, 4);
        }
        d->sinks = (const float *)(void *)region->data;
    }
}

static void decode(struct merging *m, struct input *input) {
    static const int64_t dims[] = {1, 2, 7, 16, 17, 64, 65, 130};
    rapt_states_desc *d = &m->desc;
    const uint8_t sizes = take_byte(input), dim = take_byte(input), outputs = take_byte(input);
    int64_t *const hostile[] = {&d->batch, &d->query_heads, &d->query_length, &d->value_dim, &d->count};
    memset(m, 0, sizeof *m);
    d->batch = sizes % 4;
    d->query_heads = 1 + sizes / 4 % 4;
    d->query_length = sizes / 16 % 8;
    d->value_dim = dims[dim % 8];
    d->count = 1 + dim / 8 % STATES;
    d->isa = dim / 32 % (RAPT_ISA_AVX512_BF16 + 2);
    d->numerics = sizes & 128 ? RAPT_NUMERICS_ORDER_2 : RAPT_NUMERICS_DEFAULT;
    if (outputs & 8)
        *hostile[take_byte(input) % 5] = take_hostile(input);
    if (outputs & 16)
        d->reserved[take_byte(input) % 3] = 1;
    struct region *states = add_region(&m->memory, STATES * sizeof *m->states);
    memset(states->data, 0, states->bytes);
    for (int i = 0; i < STATES; i++)
        decode_tensor(m, (rapt_tensor *)(void *)states->data + i, d->value_dim < 2000 ? d->value_dim + 2 : 0, input);
    m->states = (rapt_tensor *)(void *)states->data;
    d->states = outputs & 32 ? NULL : m->states;
    if (d->count > STATES && d->count <= RAPT_MOST_STATES) /* no more exist */
        d->count = STATES;
    if (outputs & 1)
        decode_tensor(m, &d->merged, d->value_dim < 2000 ? d->value_dim + 2 : 0, input);
    if (outputs & 2)
        decode_tensor(m, &d->out, d->value_dim, input);
    if (outputs & 4)
        decode_tensor(m, &d->lse, 1, input);
    decode_lists(m, input);
    d->struct_size = (uint32_t)(outputs & 64 ? take_byte(input) * 4 : sizeof *d);
    const struct region *given = add_region(&m->memory, d->struct_size < 8 ? 8 : d->struct_size);
    memset(given->data, outputs & 128 ? 1 : 0, given->bytes);
    memcpy(given->data, d, given->bytes < sizeof *d ? given->bytes : sizeof *d);
    m->given = (const rapt_states_desc *)(void *)given->data;
    if (d->struct_size < sizeof *d)
        memset((char *)d + d->struct_size, 0, sizeof *d - d->struct_size);
}

/* The reference loops over a batch without queries, however large. */
static void merge(const void *desc) {
    if (((const rapt_states_desc *)desc)->query_length > 0)
        rapt_reference_merge_states(desc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct input input = {data, data + bytes};
    struct merging m;
    rapt_message message;
    decode(&m, &input);
    struct snapshot before = snapshot_of(&m.memory);
    memset(&message, 'x', sizeof message);
    const rapt_status status = rapt_merge_states(m.given, NULL, &message);
    expect_text(status, &message);
    if (status == RAPT_OK)
        expect_result(&m.memory, merge, &m.desc, &before);
    else
        expect_memory(&m.memory, &before, "after a refusal");
    *(status == RAPT_OK ? &fuzz_taken : &fuzz_refused) += 1;
    snapshot_free(&before);
    fuzzed_call_free(&m.memory);
    return 0;
}
