/* SPDX-License-Identifier: MIT
 * Plans bound to memory of all kinds: a status with a text, and the plan and all memory unchanged; or the reference's
 * bits, and nothing accessed outside the memory that the bindings state. An input's first bytes choose the bindings,
 * the rest is a call as in descriptor.c. */
#include <stdlib.h>
#include <string.h>

#include "descriptor_run.h"

enum { PREFIX = 64, TENSORS = 11, MOST_HEADS = 4096 };

/* The bindings, and the tensors of a descriptor that has them. */
struct bound {
    rapt_attention_desc desc;
    rapt_bindings bindings;
    const rapt_bindings *given; /* struct_size bytes */
    bool is_right;              /* exactly the call's own */
};

static rapt_tensor *tensor_of(rapt_attention_desc *d, int i) {
    rapt_tensor *const tensors[TENSORS] = {&d->query, &d->key,       &d->value, &d->out,     &d->mask,
                                           &d->bias,  &d->keep_mask, &d->lse,   &d->weights, &d->initial_state,
                                           &d->final_state};
    return tensors[i];
}

static rapt_buffer *buffer_of(rapt_bindings *b, int i) {
    rapt_buffer *const buffers[TENSORS] = {&b->query, &b->key,       &b->value, &b->out,     &b->mask,
                                           &b->bias,  &b->keep_mask, &b->lse,   &b->weights, &b->initial_state,
                                           &b->final_state};
    return buffers[i];
}

/* ---- tensors */

static const struct region *region_with(const struct fuzzed_call *call, const void *data) {
    for (int i = 0; i < call->region_count; i++)
        if ((const char *)data >= call->regions[i].data &&
            (const char *)data <= call->regions[i].data + call->regions[i].bytes && call->regions[i].bytes > 0)
            return &call->regions[i];
    return NULL;
}

static size_t bytes_from(const struct region *region, const void *data) {
    return (size_t)(region->data + region->bytes - (const char *)data);
}

enum { RIGHT, RIGHT_TOO, COPY, ELSEWHERE, ABSENT, EXTENT, SHIFTED, SCALED, CHOICES };

/* Without a stated extent, all memory that the strides reach; otherwise it states what exists, or less. */
static void decode_buffer(struct fuzzed_call *call, rapt_buffer *buffer, const rapt_tensor *tensor,
                          struct input *prefix) {
    const uint8_t way = take_byte(prefix), detail = take_byte(prefix);
    const struct region *own = region_with(call, tensor->data);
    *buffer = rapt_output_buffer(tensor->data, tensor->extent_bytes);
    buffer->scales = tensor->scales;
    buffer->zero_points = tensor->zero_points;
    buffer->scale_extent_bytes = tensor->scale_extent_bytes;
    switch (own || way % CHOICES == ELSEWHERE ? way % CHOICES : RIGHT) {
    case COPY: {
        const size_t offset = own->bytes - bytes_from(own, tensor->data);
        const struct region *copy = add_region(call, own->bytes);
        fill(copy, tensor->dtype, detail);
        buffer->data = copy->data + offset;
        break;
    }
    case ELSEWHERE: {
        const struct region *other = &call->regions[detail % call->region_count];
        const size_t from = other->bytes ? (size_t)way / CHOICES * 4 % other->bytes : 0;
        buffer->data = other->bytes ? other->data + from : NULL;
        buffer->extent_bytes = (int64_t)(other->bytes - from);
        break;
    }
    case ABSENT:
        *buffer = rapt_output_buffer(NULL, detail % 2 ? 64 : 0);
        break;
    case EXTENT: {
        struct input one = {&detail, &detail + 1};
        const int64_t hostile = take_hostile(&one), most = (int64_t)bytes_from(own, tensor->data);
        buffer->extent_bytes = hostile == 0 || hostile > most ? most : hostile;
        break;
    }
    case SHIFTED:
        if (bytes_from(own, tensor->data) > 3) {
            buffer->data = (char *)tensor->data + 1 + detail % 3;
            buffer->extent_bytes = (int64_t)bytes_from(own, buffer->data);
        }
        break;
    case SCALED:
        if (detail & 8 && tensor->scale_extent_bytes)
            buffer->scale_extent_bytes -= detail / 16 * 4;
        else
            *(detail % 2 ? &buffer->scales : &buffer->zero_points) = tensor->scales ? NULL : tensor->data;
        break;
    default:
        break;
    }
}

/* ---- lists: the library may read query_heads floats, so many exist */

static void decode_list(struct fuzzed_call *call, const float **bound, const float *list, struct input *prefix) {
    const uint8_t way = take_byte(prefix), detail = take_byte(prefix);
    const int64_t heads = call->desc.query_heads;
    const size_t bytes = (size_t)heads * sizeof(float);
    *bound = list;
    if (heads < 0 || heads > MOST_HEADS)
        return;
    const struct region *other = &call->regions[detail % call->region_count];
    switch (way % 4) {
    case 1:
        *bound = NULL;
        break;
    case 2: {
        const struct region *copy = add_region(call, bytes);
        for (int64_t h = 0; h < heads; h++) {
            const float x = way & 4 ? take_float(prefix) : (float)(h % 3) - 0.25f;
            memcpy(copy->data + h * 4, &x, sizeof x);
        }
        *bound = (const float *)(const void *)copy->data;
        break;
    }
    case 3:
        if (other->bytes >= bytes + way / 4 % 8)
            *bound = (const float *)(const void *)(other->data + way / 4 % 8);
        break;
    default:
        break;
    }
}

/* ---- bindings */

/* The caller's copy, of exactly the size that it states. */
static void give(struct fuzzed_call *call, struct bound *bound, uint8_t way) {
    const size_t whole = sizeof bound->bindings;
    const size_t some[] = {0, 4, 8, whole / 16 * 8, whole - 64, whole - 8, whole + 8, whole + 64};
    const size_t bytes = way & 2 ? some[way / 4 % 8] : whole;
    const struct region *region = add_region(call, bytes < 8 ? 8 : bytes);
    bound->bindings.struct_size = (uint32_t)bytes;
    bound->bindings.reserved_zero = (way & 0xc2) == 0xc0;
    bound->bindings.reserved[7] = (way & 0xc2) == 0x80;
    memset(region->data, way & 32 ? 1 : 0, region->bytes);
    memcpy(region->data, &bound->bindings, region->bytes < whole ? region->bytes : whole);
    bound->given = (const rapt_bindings *)(void *)region->data;
    if (bytes < whole)
        memset((char *)&bound->bindings + bytes, 0, whole - bytes);
}

static void decode_bindings(struct fuzzed_call *call, struct bound *bound, uint8_t way, struct input *prefix) {
    rapt_bindings *b = &bound->bindings;
    rapt_attention_desc *d = &bound->desc;
    memset(b, 0, sizeof *b);
    for (int i = 0; i < TENSORS - 2; i++)
        decode_buffer(call, buffer_of(b, i), tensor_of(&call->desc, i), prefix);
    decode_list(call, &b->bias_head_factor, call->desc.bias_head_factor, prefix);
    decode_list(call, &b->alibi_slopes, call->desc.alibi_slopes, prefix);
    decode_list(call, &b->sinks, call->desc.sinks, prefix);
    for (int i = TENSORS - 2; i < TENSORS; i++) /* states: after the fields of earlier inputs */
        decode_buffer(call, buffer_of(b, i), tensor_of(&call->desc, i), prefix);
    give(call, bound, way);
    *d = call->desc;
    bound->is_right = (way & 0xc2) == 0 || (way & 0xc2) == 0x40;
    for (int i = 0; i < TENSORS; i++) {
        const rapt_tensor *tensor = tensor_of(&call->desc, i);
        const rapt_buffer *buffer = buffer_of(b, i);
        bound->is_right = bound->is_right && buffer->data == tensor->data && buffer->scales == tensor->scales &&
                          buffer->zero_points == tensor->zero_points &&
                          buffer->scale_extent_bytes == tensor->scale_extent_bytes &&
                          buffer->extent_bytes == tensor->extent_bytes;
        tensor_of(d, i)->data = buffer->data;
        tensor_of(d, i)->extent_bytes = buffer->extent_bytes;
        tensor_of(d, i)->scales = (void *)(uintptr_t)buffer->scales;
        tensor_of(d, i)->zero_points = (void *)(uintptr_t)buffer->zero_points;
        tensor_of(d, i)->scale_extent_bytes = buffer->scale_extent_bytes;
    }
    bound->is_right = bound->is_right && b->bias_head_factor == d->bias_head_factor &&
                      b->alibi_slopes == d->alibi_slopes && b->sinks == d->sinks;
    d->bias_head_factor = b->bias_head_factor;
    d->alibi_slopes = b->alibi_slopes;
    d->sinks = b->sinks;
}

/* With the call's memory, or none. A struct_size below any release's is refused: without the fields beyond it, that
 * memory would not suffice. */
static rapt_status plan_of(rapt_plan *plan, const rapt_attention_desc *desc, bool with_data) {
    rapt_attention_desc d = *desc;
    d.struct_size = desc->struct_size < sizeof d ? desc->struct_size : sizeof d;
    for (int i = 0; i < TENSORS && !with_data; i++) {
        tensor_of(&d, i)->data = NULL;
        tensor_of(&d, i)->extent_bytes = tensor_of(&d, i)->scale_extent_bytes = 0;
        tensor_of(&d, i)->scales = tensor_of(&d, i)->zero_points = NULL;
    }
    return rapt_plan_init(plan, &d, NULL);
}

static void check_bound(struct fuzzed_call *call, rapt_plan *plan, const struct bound *bound) {
    const rapt_plan before = *plan;
    struct snapshot memory = snapshot_of(call);
    rapt_plan other;
    rapt_message message;
    memset(&message, 'x', sizeof message);
    const rapt_status status = rapt_plan_bind(plan, bound->given, &message);
    expect_text(status, &message);
    expect_memory(call, &memory, "after a binding");
    if (status != RAPT_OK && memcmp(plan, &before, sizeof before) != 0)
        fuzz_fail("a refused binding has changed the plan");
    if (status != RAPT_OK && bound->is_right && plan_of(&other, &call->desc, true) == RAPT_OK)
        fuzz_fail("the call's own memory is refused: %s", message.text);
    if (status == RAPT_OK && is_small(&call->desc)) {
        const rapt_status ran = run_plan(plan, call->way);
        if (ran != RAPT_OK)
            fuzz_fail("bound, but then: %s", rapt_status_text(ran));
        expect_reference(call, &bound->desc, &memory);
    }
    *(status == RAPT_OK ? &fuzz_taken : &fuzz_refused) += 1;
    snapshot_free(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const uint8_t *middle = data + (bytes < PREFIX ? bytes : PREFIX);
    struct input prefix = {data, middle}, rest = {middle, data + bytes};
    struct fuzzed_call call;
    struct bound bound;
    rapt_plan plan;
    fuzzed_call_decode(&call, &rest);
    const uint8_t way = take_byte(&prefix);
    if (plan_of(&plan, &call.desc, way & 1) == RAPT_OK) {
        decode_bindings(&call, &bound, way, &prefix);
        check_bound(&call, &plan, &bound);
    }
    fuzzed_call_free(&call);
    return 0;
}
