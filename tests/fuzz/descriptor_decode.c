/* SPDX-License-Identifier: MIT */
#include "descriptor_decode.h"

#include <stdlib.h>
#include <string.h>

#include "support/support.h"

/* Third bytes from here on mean packed sequences and pages. */
enum { PLACED = 144 };

static const int64_t hostile_integers[] = {
    -1, 0, 1, -2, 2, 3, 4, -4, 5, 7, 8, 12, 16, 64, 1024, 1025, 4096, -4096, INT32_MAX, INT32_MIN,
    (int64_t)1 << 31, (int64_t)1 << 32, (int64_t)1 << 40, ((int64_t)1 << 40) + 1, (int64_t)1 << 48,
    ((int64_t)1 << 48) + 1, -((int64_t)1 << 48) - 1, (int64_t)1 << 61, (int64_t)1 << 62, INT64_MAX, INT64_MAX - 3,
    INT64_MIN};
enum { HOSTILE_INTEGERS = sizeof hostile_integers / sizeof *hostile_integers };

int64_t take_hostile(struct input *input) {
    const uint8_t choice = take_byte(input);
    return choice == 0xff ? (int64_t)take_word(input) : hostile_integers[choice % HOSTILE_INTEGERS];
}

float take_float(struct input *input) {
    static const uint32_t bits[] = {0x00000000, 0x3f800000, 0x3e000000, 0xbf000000, 0x80000000, 0x7f800000, 0xff800000,
                                    0x7fc00000, 0x7f7fffff, 0x00000001, 0xff7fffff, 0x3dcccccd, 0x42480000, 0x7f000000};
    const uint8_t choice = take_byte(input);
    return float_of(choice == 0xff ? (uint32_t)take_word(input) : bits[choice % (sizeof bits / sizeof *bits)]);
}

/* ---- memory */

struct region *add_region(struct fuzzed_call *call, size_t bytes) {
    if (call->region_count == MOST_REGIONS)
        fuzz_fail("more than %d regions", MOST_REGIONS);
    struct region *region = &call->regions[call->region_count++];
    *region = region_new(bytes);
    return region;
}

/* A type of keys and values other than float32. */
static bool is_stored(int dtype) { return dtype != RAPT_F32 && dtype != RAPT_BOOL8 && rapt_row_bytes(dtype, 1024) > 0; }

void fill(const struct region *region, int dtype, uint8_t content) {
    struct random random = {content};
    for (size_t i = 0; dtype == RAPT_BOOL8 && i < region->bytes; i++)
        region->data[i] = (char)(random_chance(&random, content % 4 * 30) ? 1 + content % 3 : 0);
    if (is_stored(dtype)) /* any blocks; some of float16 near 1 */
        for (size_t i = 0; i < region->bytes; i++) {
            const uint8_t byte = (uint8_t)random_bits(&random);
            region->data[i] = (char)(content % 4 == 3 || i % 2 == 0 || dtype != RAPT_F16 ? byte : (byte & 0x8f) | 0x30);
        }
    for (size_t i = 0; dtype == RAPT_F32 && i + 4 <= region->bytes; i += 4) {
        const float x = content % 4 == 3   ? random_special(&random)
                        : content % 4 == 2 ? float_of((uint32_t)random_bits(&random))
                                           : 2 * random_uniform(&random);
        memcpy(region->data + i, &x, sizeof x);
    }
}

/* ---- tensors */

struct shape {
    int64_t count[4]; /* batch, head, token, innermost */
    bool is_output;
    int dtype;
};

/* A storage type for keys or values, whose rows are whole blocks. */
static int stored_dtype(uint8_t choice, int64_t dim) {
    int32_t dtype = 0;
    for (int left = choice % 16; left >= 0; left--)
        do
            dtype = dtype % 64 + 1;
        while (!is_stored(dtype));
    return rapt_row_bytes(dtype, dim) > 0 ? dtype : RAPT_F16;
}

static int64_t *stride_of(const struct fuzzed_call *call, rapt_tensor *tensor, int dim) {
    const bool is_paged = is_paged_tensor(call, tensor);
    int64_t *const strides[3] = {is_paged ? &tensor->page_stride_bytes : &tensor->batch_stride_bytes,
                                 &tensor->head_stride_bytes, &tensor->token_stride_bytes};
    return strides[dim];
}

/* Lays this shape out in memory of exactly its size; false if that is too large. style: which dims are reversed or
 * broadcast, their order, padding. */
static bool lay_out(struct fuzzed_call *call, rapt_tensor *tensor, const struct shape *shape, uint8_t style,
                    uint8_t content) {
    static const int orders[3][3] = {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}}; /* innermost first */
    if (shape->count[3] < 0 || shape->count[3] > MOST_COMPUTED / 4)
        return false;
    const int64_t row = rapt_row_bytes(shape->dtype, shape->count[3]);
    const int64_t padding = style % 3 * (shape->dtype == RAPT_F32 ? 4 : shape->dtype == RAPT_BOOL8 ? 1 : 2);
    int64_t span = row + padding, bytes = row, first = 0;
    for (int k = 0; k < 3; k++) {
        const int dim = orders[style / 3 % 3][k];
        const int64_t count = shape->count[dim];
        if (count < 0 || count > MOST_COMPUTED || (count > 0 && span > MOST_COMPUTED / count))
            return false;
        const bool is_broadcast = !shape->is_output && style / 9 % 8 == dim + 1;
        const bool is_reversed = !shape->is_output && style / 9 % 8 == dim + 4;
        const int64_t stride = is_broadcast ? 0 : is_reversed ? -span : span;
        *stride_of(call, tensor, dim) = stride;
        bytes = count == 0 ? 0 : is_broadcast ? bytes : bytes + (count - 1) * span;
        first += is_reversed && count > 0 ? (count - 1) * span : 0;
        span = is_broadcast ? span : span * (count ? count : 1) + padding;
    }
    const struct region *region = add_region(call, (size_t)bytes);
    fill(region, shape->dtype, content);
    tensor->data = region->data + (bytes ? first : 0);
    tensor->extent_bytes = first == 0 && style % 2 ? bytes : 0;
    return true;
}

/* Memory of some size, stated, and strides that may not fit. An extent of 0 would state nothing. */
static void state_extent(struct fuzzed_call *call, rapt_tensor *tensor, const struct shape *shape,
                         struct input *input, bool is_shared, uint8_t content) {
    static const int sizes[] = {4, 64, 400, 1000, 4096, 20000, 17, 8192};
    const uint8_t choice = take_byte(input), offset = take_byte(input);
    const struct region *region;
    if (is_shared && call->region_count > 0) {
        region = &call->regions[choice % call->region_count];
    } else {
        region = add_region(call, (size_t)sizes[choice % 8]);
        fill(region, shape->dtype, content);
    }
    const size_t from = region->bytes > 0 ? (size_t)offset * (offset % 2 ? 1 : 4) % region->bytes : 0;
    tensor->extent_bytes = (int64_t)(region->bytes - from);
    tensor->data = region->bytes > 0 ? region->data + from : NULL;
    for (int dim = 0; dim < 3; dim++)
        *stride_of(call, tensor, dim) = take_byte(input) % 2 ? take_hostile(input) : 4 * (int64_t)take_byte(input);
}

enum { WAY_PRESENT = 1, WAY_STATED = 2, WAY_SHARED = 4, WAY_HOSTILE = 8, WAY_ABSENT_REQUIRED = 0xf0 };

/* A pointer to scales or zero points that cannot be told from a valid one. */
static bool is_wild(const rapt_tensor *tensor, size_t offset, int64_t hostile) {
    return (offset == offsetof(rapt_tensor, scales) && tensor->scale_dtype && hostile && hostile % 4 == 0) ||
           (offset == offsetof(rapt_tensor, zero_points) && tensor->zero_point_dtype && hostile);
}

static void decode_tensor(struct fuzzed_call *call, rapt_tensor *tensor, struct shape *shape, bool is_required,
                          struct input *input) {
    const uint8_t way = take_byte(input);
    if (is_required ? way == WAY_ABSENT_REQUIRED : !(way & WAY_PRESENT))
        return;
    const uint8_t style = take_byte(input), content = take_byte(input);
    const rapt_attention_desc *d = &call->desc;
    if (content & 128 && (tensor == &d->key || tensor == &d->value))
        shape->dtype = stored_dtype(way >> 4, shape->count[3]);
    if (content & 128 && (tensor == &d->query || tensor == &d->bias || tensor == &d->out))
        shape->dtype = way & 16 ? RAPT_F16 : RAPT_BF16;
    tensor->dtype = shape->dtype;
    if ((way & (WAY_STATED | WAY_SHARED)) || !lay_out(call, tensor, shape, style, content))
        state_extent(call, tensor, shape, input, way & WAY_SHARED, content);
    add_scales(call, tensor, shape->count, content);
    if (way & WAY_HOSTILE) { /* one word of the tensor after its data: with the extent stated, or refused */
        const size_t first = offsetof(rapt_tensor, data) + sizeof tensor->data;
        const size_t words = (sizeof *tensor - first) / 8, word = take_byte(input) % words;
        const int64_t hostile = take_hostile(input);
        if (first + 8 * word == offsetof(rapt_tensor, extent_bytes) && !(hostile < tensor->extent_bytes && hostile))
            return;
        if (tensor->scales && 8 * word + first > offsetof(rapt_tensor, zero_points) && !tensor->scale_extent_bytes)
            return;
        if (first + 8 * word == offsetof(rapt_tensor, scale_extent_bytes) &&
            !(hostile < tensor->scale_extent_bytes && hostile))
            return;
        if (is_wild(tensor, first + 8 * word, hostile))
            return;
        const bool is_page_stride = first + 8 * word == offsetof(rapt_tensor, page_stride_bytes);
        if (tensor->extent_bytes > 0 || first + 8 * word < offsetof(rapt_tensor, batch_stride_bytes) ||
            (first + 8 * word > offsetof(rapt_tensor, extent_bytes) && !is_page_stride))
            memcpy((char *)tensor + first + 8 * word, &hostile, 8);
        if (tensor->extent_bytes == 0 &&
            rapt_row_bytes(tensor->dtype, shape->count[3]) > rapt_row_bytes(shape->dtype, shape->count[3]))
            tensor->dtype = shape->dtype; /* longer rows have no memory, and nothing states so */
    }
}

static void decode_tensors(struct fuzzed_call *call, struct input *input) {
    rapt_attention_desc *d = &call->desc;
    const int64_t value_dim = d->value_dim ? d->value_dim : d->head_dim;
    const struct counted queries = queries_of(d);
    const struct counted keys = keys_of(d, &d->key_pages), values = keys_of(d, &d->value_pages);
    const int64_t b = queries.batch, h = d->query_heads, k = d->kv_heads, q = queries.tokens, n = d->kv_length;
    struct {
        rapt_tensor *tensor;
        struct shape shape;
        bool is_required;
    } tensors[] = {
        {&d->query, {{b, h, q, d->head_dim}, false, RAPT_F32}, true},
        {&d->key, {{keys.batch, k, keys.tokens, d->head_dim}, false, RAPT_F32}, true},
        {&d->value, {{values.batch, k, values.tokens, value_dim}, false, RAPT_F32}, true},
        {&d->out, {{b, h, q, value_dim}, true, RAPT_F32}, true},
        {&d->mask, {{b, h, q, n}, false, RAPT_BOOL8}, false},
        {&d->bias, {{b, h, q, n}, false, RAPT_F32}, false},
        {&d->keep_mask, {{b, h, q, n}, false, RAPT_BOOL8}, false},
        {&d->lse, {{b, h, q, 1}, true, RAPT_F32}, false},
        {&d->weights, {{b, h, q, n}, true, RAPT_F32}, false},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        decode_tensor(call, tensors[i].tensor, &tensors[i].shape, tensors[i].is_required, input);
}

/* After all fields of earlier inputs. Numbers may make most states legal. */
static void decode_states(struct fuzzed_call *call, struct input *input) {
    enum { WAY_IN_PLACE = 16, CONTENT_EVEN = 64 };
    rapt_attention_desc *d = &call->desc;
    const int64_t value_dim = d->value_dim ? d->value_dim : d->head_dim;
    const int64_t floats = value_dim < INT64_MAX - 2 ? value_dim + 2 : value_dim;
    const struct counted queries = queries_of(d);
    struct shape shape = {{queries.batch, d->query_heads, queries.tokens, floats}, false, RAPT_F32};
    const int first = call->region_count;
    decode_tensor(call, &d->initial_state, &shape, false, input);
    const uint8_t way = take_byte(input);
    for (size_t i = 0; way & CONTENT_EVEN && call->region_count > first && i + 4 <= call->regions[first].bytes;
         i += 4) {
        const float x = (float)(i / 4 * 7 % 5) * 2;
        memcpy(call->regions[first].data + i, &x, sizeof x);
    }
    shape.is_output = true;
    if (way & WAY_IN_PLACE)
        d->final_state = d->initial_state;
    else
        decode_tensor(call, &d->final_state, &shape, false, input);
}

/* ---- the rest */

static void decode_sizes(struct fuzzed_call *call, struct input *input) {
    static const int64_t batches[] = {1, 2, 3, 0}, kv_heads[] = {1, 2, 3, 4}, groups[] = {1, 2, 4, 9};
    static const int64_t queries[] = {1, 2, 3, 5, 9, 17, 33, 0}, dims[] = {1, 2, 3, 4, 8, 15, 16, 17, 24, 33, 64, 65};
    static const int64_t keys[] = {1, 2, 7, 8, 16, 17, 31, 33, 64, 100, 255, 256, 257, 300, 513, 0};
    const uint8_t heads = take_byte(input), lengths = take_byte(input), head_dim = take_byte(input);
    rapt_attention_desc *d = &call->desc;
    call->is_placed = head_dim >= PLACED;
    d->batch = batches[heads % 4];
    d->kv_heads = kv_heads[heads / 4 % 4];
    d->query_heads = d->kv_heads * groups[heads / 16 % 4];
    d->query_length = queries[lengths % 8];
    d->kv_length = keys[lengths / 8 % 16];
    d->head_dim = dims[head_dim % 12];
    d->value_dim = lengths & 128 ? dims[head_dim / 12 % 12] : 0;
    int64_t *const sizes[] = {&d->batch,     &d->query_heads, &d->kv_heads, &d->query_length,
                              &d->kv_length, &d->head_dim,    &d->value_dim};
    for (uint8_t hostile = heads / 64; hostile > 0; hostile--) {
        int64_t *const size = sizes[take_byte(input) % 7];
        *size = take_hostile(input);
    }
}

static void decode_numbers(rapt_attention_desc *d, struct input *input) {
    static const int64_t windows[] = {-1, 0, 1, 5, 100, 255, 256, 300};
    const uint8_t switches = take_byte(input), kinds = take_byte(input);
    d->features = switches & 31;
    d->isa = RAPT_ISA_AUTO + kinds % (RAPT_ISA_AVX512_BF16 + 2);
    d->query_origin = kinds / 8 % 5;
    d->weights_kind = kinds / 40 % 6;
    if ((d->features & RAPT_SCALE) || switches & 32)
        d->scale = take_float(input);
    if ((d->features & RAPT_MASK_FILL) || switches & 32)
        d->mask_fill = take_float(input);
    if (switches & 64)
        d->softcap = take_float(input);
    const uint8_t kept = take_byte(input), window = take_byte(input);
    d->keep_scale = kept & 1 ? 1.25f : kept & 2 ? take_float(input) : 0;
    if ((d->features & RAPT_WINDOW) || switches & 32) {
        d->window_left = kept & 4 ? take_hostile(input) : windows[window % 8];
        d->window_right = kept & 8 ? take_hostile(input) : windows[window / 8 % 8];
    }
    if (switches & 128) { /* any word of the head, or of the reserved ones */
        uint64_t *const words[] = {&d->features, &d->reserved[0], &d->reserved[7]};
        *words[take_byte(input) % 3] = (uint64_t)take_hostile(input);
    }
}

/* Queries, keys and values of the one type that another order requires, if their memory suffices. */
static void set_order(rapt_attention_desc *d, uint8_t way) {
    rapt_tensor *const tensors[] = {&d->query, &d->key, &d->value};
    const int64_t dims[] = {d->head_dim, d->head_dim, d->value_dim ? d->value_dim : d->head_dim};
    const int32_t dtype = way & 128 ? RAPT_F16 : RAPT_BF16;
    d->numerics = RAPT_NUMERICS_ORDER_2;
    for (int i = 0; i < 3; i++)
        if (tensors[i]->dtype && rapt_row_bytes(tensors[i]->dtype, dims[i]) >= rapt_row_bytes(dtype, dims[i]))
            tensors[i]->dtype = dtype;
}

/* The caller's copy, of exactly the size that it states. */
static void give(struct fuzzed_call *call, struct input *input) {
    const uint8_t way = take_byte(input);
    rapt_attention_desc *d = &call->desc;
    const int32_t numerics = way & 16 ? (int32_t)take_hostile(input) : 0;
    decode_states(call, input);
    if (way & 64)
        set_order(d, way);
    const size_t whole = sizeof *d, some[] = {0, 4, 8, whole / 16 * 8, whole - 64, whole - 8, whole + 8, whole + 64};
    const size_t bytes = way & 1 ? some[way / 2 % 8] : whole;
    d->struct_size = (uint32_t)bytes;
    d->numerics = way & 16 ? numerics : d->numerics;
    const struct region *region = add_region(call, bytes < 8 ? 8 : bytes);
    memset(region->data, way & 32 ? 1 : 0, region->bytes);
    memcpy(region->data, d, region->bytes < whole ? region->bytes : whole);
    call->given = (const rapt_attention_desc *)(void *)region->data;
    if (bytes < whole)
        memset((char *)d + bytes, 0, whole - bytes);
}

void fuzzed_call_decode(struct fuzzed_call *call, struct input *input) {
    memset(call, 0, sizeof *call);
    decode_sizes(call, input);
    decode_numbers(&call->desc, input);
    call->way = take_byte(input);
    if (call->is_placed)
        decode_places(call, input);
    decode_tensors(call, input);
    decode_call_lists(call, input);
    give(call, input);
}

void fuzzed_call_free(struct fuzzed_call *call) {
    for (int i = 0; i < call->region_count; i++)
        region_free(&call->regions[i]);
}
