/* SPDX-License-Identifier: MIT */
#include "layers_decode.h"

#include <string.h>

enum { MOST_NUMBERS = 1 << 16, MOST_STACKED = 4 };

double times(double a, int64_t b) { return a < 0 || b < 0 ? -1 : a * (double)b; }

double product(int64_t a, int64_t b, int64_t c) { return times(times(times(1, a), b), c); }

int64_t take_size(struct input *input) {
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 33};
    return sizes[take_byte(input) % 10];
}

/* ---- memory */

void *pointer_at(const void *place) {
    void *pointer;
    memcpy(&pointer, place, sizeof pointer);
    return pointer;
}

void *new_room(struct fuzzed_layer *l, size_t bytes) { return add_region(&l->call, bytes)->data; }

void lay(struct fuzzed_layer *l, const char *name, const void *place, enum role role, int dtype, double numbers) {
    const size_t each = dtype == RAPT_BOOL8 ? 1 : sizeof(float);
    const bool impossible = numbers < 0 || numbers > (double)INT64_MAX / (double)each;
    const size_t bytes = numbers < 0 || numbers > MOST_NUMBERS ? 0 : (size_t)numbers * each;
    const struct region *region = add_region(&l->call, bytes);
    l->must_refuse |= impossible;
    l->lacks_memory |= !impossible && numbers > MOST_NUMBERS;
    l->content += 4;
    fill(region, dtype, l->content);
    memcpy((void *)(uintptr_t)place, &region->data, sizeof region->data);
    l->arrays[l->count++] = (struct array){name, (void *)(uintptr_t)place, bytes, role, dtype};
}

void spoil_number(struct input *input, int64_t *const *numbers, int count) {
    const uint8_t choice = take_byte(input);
    if (choice >= 128)
        *numbers[choice % count] = take_hostile(input);
}

static bool is_wrong_linear(const rapt_linear *linear) {
    const int64_t most = INT64_C(1) << 31, stride = linear->weight_stride_bytes;
    const int64_t width = linear->layout == RAPT_WEIGHT_IN_OUT ? linear->out : linear->in;
    return linear->in < 1 || linear->in > most || linear->out < 1 || linear->out > most || linear->layout < 0 ||
           linear->layout > RAPT_WEIGHT_IN_OUT || linear->dtype < 0 || linear->dtype > RAPT_F32 ||
           (stride && (stride % 4 || stride / 4 < width));
}

static void lay_linear(struct fuzzed_layer *l, const char *name, rapt_linear *linear, int64_t in, int64_t out,
                       double rows, struct input *input) {
    enum { IN_OUT = 1, GAPS = 2, BIAS = 4, HOSTILE = 8 };
    const uint8_t way = take_byte(input);
    *linear = way & IN_OUT ? rapt_linear_in_out(NULL, NULL, in, out) : rapt_linear_of(NULL, NULL, in, out);
    if (way & GAPS)
        linear->weight_stride_bytes = 4 * ((way & IN_OUT ? out : in) + way / 64);
    if (way & HOSTILE) {
        int64_t *const words[] = {&linear->in, &linear->out, &linear->weight_stride_bytes};
        int32_t *const halves[] = {&linear->layout, &linear->dtype};
        const uint8_t which = take_byte(input) % 5;
        const int64_t hostile = take_hostile(input);
        if (which < 3)
            *words[which] = hostile;
        else
            *halves[which - 3] = (int32_t)hostile;
    }
    const bool in_out = linear->layout == RAPT_WEIGHT_IN_OUT, wrong = is_wrong_linear(linear);
    const int64_t width = in_out ? linear->out : linear->in, weight_rows = in_out ? linear->in : linear->out;
    const int64_t stride = linear->weight_stride_bytes ? linear->weight_stride_bytes / 4 : width;
    READS(name, linear->weight, wrong ? -1 : (double)(weight_rows - 1) * (double)stride + (double)width);
    if (way & BIAS)
        READS(name, linear->bias, product(linear->out, 1, 1));
    l->work += rows * (double)linear->in * (double)linear->out;
}

/* ---- how to attend */

/* Of an array with so many numbers per query or key, or with one per pair. */
static double per_query(const struct fuzzed_layer *l, int64_t numbers) {
    return product(l->call.desc.batch, l->call.desc.query_length, numbers);
}
static double per_key(const struct fuzzed_layer *l, int64_t numbers) {
    return product(l->call.desc.batch, l->call.desc.kv_length, numbers);
}
static double per_pair(const struct fuzzed_layer *l) { return times(per_query(l, 1), l->call.desc.kv_length); }

static void decode_attention(struct fuzzed_layer *l, struct input *input) {
    rapt_attention_desc *d = &l->call.desc;
    fuzzed_call_decode(&l->call, input);
    l->head_dim = d->head_dim;
    l->value_dim = d->value_dim ? d->value_dim : d->head_dim;
    d->query = d->key = d->value = d->out = (rapt_tensor){0};
    d->head_dim = d->value_dim = 0;
    l->must_refuse |= d->struct_size != sizeof *d;
    l->how = (rapt_attention_desc *)(uintptr_t)l->call.given;
    l->work = times(per_pair(l), d->query_heads) * (double)(l->head_dim + l->value_dim + 8);
    memcpy(l->how, d, d->struct_size < 8 ? 8 : d->struct_size < sizeof *d ? d->struct_size : sizeof *d);
}

/* States have rows of the plausible value_dim. */
static void use_value_dim(struct fuzzed_layer *l, int64_t value_dim) {
    const rapt_attention_desc *how = &l->call.desc;
    l->lacks_memory |= (how->initial_state.data || how->final_state.data) && value_dim > l->value_dim;
}

/* ---- layers */

int64_t value_dim_of(const rapt_attention_desc *how, const rapt_multi_head_desc *heads) {
    const int64_t hq = how->query_heads, hk = how->kv_heads;
    return hq < 1 || hk < 1 ? 0 : heads->fused.weight ? heads->fused.out / (hq + 2 * hk) : heads->value.out / hk;
}

/* width: of x and, in an encoder block, of the result. */
static void lay_heads(struct fuzzed_layer *l, rapt_multi_head_desc *heads, int64_t width, struct input *input) {
    enum { FUSED = 1, OUTPUT = 2, MEMORY = 4, MEMORY_VALUE = 8, BLOCKS = 16, CONTEXT = 32, SCORES = 64, ASIDE = 128 };
    const rapt_attention_desc *a = &l->call.desc;
    const uint8_t way = take_byte(input), results = take_byte(input);
    const bool alone = l->kind == MULTI_HEAD, memory = alone && way & MEMORY;
    const int64_t hq = a->query_heads, hk = a->kv_heads, d = l->head_dim, e = l->value_dim;
    const int64_t key_in = memory ? take_size(input) : width;
    const int64_t value_in = memory && way & MEMORY_VALUE ? take_size(input) : key_in;
    heads->struct_size = sizeof *heads;
    heads->attention = l->how;
    if (way & FUSED) {
        heads->fused_order = way & BLOCKS ? RAPT_FUSED_BLOCKS : results / 64;
        lay_linear(l, "fused", &heads->fused, width, (hq + 2 * hk) * d, per_query(l, 1), input);
    } else {
        lay_linear(l, "query", &heads->query, width, hq * d, per_query(l, 1), input);
        lay_linear(l, "key", &heads->key, key_in, hk * d, per_key(l, 1), input);
        lay_linear(l, "value", &heads->value, value_in, hk * e, per_key(l, 1), input);
    }
    const int64_t row = hq * value_dim_of(a, heads);
    use_value_dim(l, value_dim_of(a, heads));
    if (way & OUTPUT)
        lay_linear(l, "output", &heads->output, hq * (way & FUSED ? d : e), alone ? take_size(input) : width,
                   per_query(l, 1), input);
    if (alone || way & ASIDE)
        WRITES(alone ? OUT : OPTIONAL, alone ? "out" : "attention->out", heads->out,
               per_query(l, heads->output.weight ? heads->output.out : row));
    if (alone)
        READS("x", heads->x, per_query(l, way & FUSED ? heads->fused.in : heads->query.in));
    if (memory)
        READS("memory", heads->memory, per_key(l, heads->key.in));
    if (memory && way & MEMORY_VALUE)
        READS("memory_value", heads->memory_value, per_key(l, heads->value.in));
    if (way & FUSED && results & 1)
        WRITES(OPTIONAL, "fused_out", heads->fused_out, per_query(l, heads->fused.out));
    if (!(way & FUSED) && results & 1)
        WRITES(OPTIONAL, "query_out", heads->query_out, per_query(l, heads->query.out));
    if (!(way & FUSED) && results & 2)
        WRITES(OPTIONAL, "key_out", heads->key_out, per_key(l, heads->key.out));
    if (!(way & FUSED) && results & 4)
        WRITES(OPTIONAL, "value_out", heads->value_out, per_key(l, heads->value.out));
    if (way & CONTEXT)
        WRITES(OPTIONAL, "context", heads->context, per_query(l, row));
    if (way & SCORES)
        WRITES(OPTIONAL, "scores", heads->scores, times(per_pair(l), hq));
}

static void decode_multi_head(struct fuzzed_layer *l, struct input *input) {
    decode_attention(l, input);
    l->desc = new_room(l, sizeof(rapt_multi_head_desc));
    lay_heads(l, l->desc, take_size(input), input);
}

static void decode_stacked(struct fuzzed_layer *l, struct input *input) {
    decode_attention(l, input);
    rapt_stacked_desc *stacked = l->desc = new_room(l, sizeof *stacked);
    const int64_t width = take_size(input), heads = l->call.desc.query_heads;
    const size_t count = heads < 1 || heads > MOST_STACKED ? 0 : (size_t)heads;
    static const char *const names[] = {"query", "key", "value"};
    const rapt_linear **lists[] = {&stacked->query, &stacked->key, &stacked->value};
    stacked->struct_size = sizeof *stacked;
    stacked->attention = l->how;
    l->must_refuse |= heads < 1;
    l->lacks_memory |= count == 0;
    for (int i = 0; i < 3; i++) {
        rapt_linear *list = new_room(l, count * sizeof *list);
        *lists[i] = list;
        for (size_t h = 0; h < count; h++)
            lay_linear(l, names[i], &list[h], width, i == 2 ? l->value_dim : l->head_dim, per_query(l, 1), input);
    }
    use_value_dim(l, count ? stacked->value->out : 0);
    READS("x", stacked->x, per_query(l, count ? stacked->query->in : 0));
    WRITES(OUT, "out", stacked->out, times(per_query(l, count ? stacked->value->out : 0), heads));
}

static void decode_encoder(struct fuzzed_layer *l, struct input *input) {
    enum { IN_PLACE = 1, NORM1_OUT = 2, FF_OUT = 4, PRE_NORM = 8, OTHER_WIDTH = 16, HOSTILE = 32 };
    decode_attention(l, input);
    rapt_encoder_desc *block = l->desc = new_room(l, sizeof *block);
    rapt_multi_head_desc *heads = new_room(l, sizeof *heads);
    const uint8_t way = take_byte(input), norms = take_byte(input);
    block->struct_size = sizeof *block;
    block->attention = heads;
    block->activation = way / 64;
    block->pre_norm = way & HOSTILE ? (int32_t)take_hostile(input) : (way & PRE_NORM) != 0;
    l->must_refuse |= block->activation > RAPT_GELU_TANH || block->pre_norm < 0 || block->pre_norm > 1;
    lay_heads(l, heads, way & OTHER_WIDTH ? take_size(input) : l->call.desc.query_heads * l->value_dim, input);
    const int64_t width = heads->fused.weight ? heads->fused.in : heads->query.in;
    lay_norm(l, "norm1", &block->norm1, width, norms, input);
    lay_norm(l, "norm2", &block->norm2, width, norms / 8, input);
    lay_linear(l, "ff1", &block->ff1, width, take_size(input), per_query(l, 1), input);
    lay_linear(l, "ff2", &block->ff2, block->ff1.out, width, per_query(l, 1), input);
    READS("x", block->x, per_query(l, width));
    WRITES(OUT, "out", block->out, per_query(l, width));
    if (way & IN_PLACE)
        block->out = (float *)(uintptr_t)block->x;
    if (way & NORM1_OUT)
        WRITES(OPTIONAL, "norm1_out", block->norm1_out, per_query(l, width));
    if (way & FF_OUT)
        WRITES(OPTIONAL, "ff_out", block->ff_out, per_query(l, width));
}

static void decode_additive(struct fuzzed_layer *l, struct input *input) {
    decode_attention(l, input);
    rapt_additive_desc *additive = l->desc = new_room(l, sizeof *additive);
    const int64_t units = take_size(input);
    additive->struct_size = sizeof *additive;
    additive->attention = l->how;
    lay_linear(l, "w", &additive->w, take_size(input), units, per_query(l, 1), input);
    lay_linear(l, "u", &additive->u, l->value_dim, units, per_key(l, 1), input);
    use_value_dim(l, additive->u.in);
    READS("v", additive->v, product(additive->w.out, 1, 1));
    READS("state", additive->state, per_query(l, additive->w.in));
    READS("memory", additive->memory, per_key(l, additive->u.in));
    WRITES(OUT, "out", additive->out, per_query(l, additive->u.in));
    if (take_byte(input) & 1)
        WRITES(OPTIONAL, "scores", additive->scores, per_pair(l));
    l->work += per_pair(l) * (double)(units + additive->u.in) * 4;
}

static void lay_luong_results(struct fuzzed_layer *l, rapt_luong_desc *luong, uint8_t way) {
    enum { SCORES = 1, ALIGN = 2, POSITION = 4 };
    WRITES(OUT, "out", luong->out, per_query(l, luong->memory_width));
    if (luong->w_c.weight)
        WRITES(OPTIONAL, "attentional", luong->attentional, per_query(l, luong->w_c.out));
    if (way & SCORES)
        WRITES(OPTIONAL, "scores", luong->scores, per_pair(l));
    if (way & ALIGN)
        WRITES(OPTIONAL, "align", luong->align, per_pair(l));
    if (way & POSITION)
        WRITES(OPTIONAL, "position", luong->position, per_query(l, 1));
}

static void decode_luong(struct fuzzed_layer *l, struct input *input) {
    enum { ATTENTIONAL = 8, OTHER_WIDTH = 16 };
    decode_attention(l, input);
    rapt_luong_desc *luong = l->desc = new_room(l, sizeof *luong);
    const uint8_t kinds = take_byte(input), way = take_byte(input);
    luong->struct_size = sizeof *luong;
    luong->attention = l->how;
    luong->score = kinds % 4, luong->window = kinds / 4 % 4, luong->reach = kinds / 16;
    luong->state_width = luong->memory_width = l->value_dim;
    luong->units = take_size(input);
    if (way & OTHER_WIDTH)
        luong->state_width = take_size(input);
    int64_t *const words[] = {&luong->reach, &luong->state_width, &luong->memory_width, &luong->units};
    spoil_number(input, words, 4);
    const int64_t d = luong->state_width, e = luong->memory_width;
    use_value_dim(l, e);
    const bool concat = luong->score == RAPT_LUONG_CONCAT;
    l->must_refuse |= luong->score > RAPT_LUONG_CONCAT || luong->window > RAPT_LUONG_LOCAL_P || d < 1 || e < 1;
    READS("state", luong->state, per_query(l, d));
    READS("memory", luong->memory, per_key(l, e));
    if (luong->score != RAPT_LUONG_DOT)
        READS("w_a", luong->w_a, concat ? product(luong->units, 1, 1) * ((double)d + (double)e) : product(d, e, 1));
    if (concat)
        READS("v_a", luong->v_a, product(luong->units, 1, 1));
    if (luong->window == RAPT_LUONG_LOCAL_P) {
        lay_linear(l, "w_p", &luong->w_p, d, take_size(input), per_query(l, 1), input);
        READS("v_p", luong->v_p, product(luong->w_p.out, 1, 1));
    }
    if (way & ATTENTIONAL)
        lay_linear(l, "w_c", &luong->w_c, e + d, take_size(input), per_query(l, 1), input);
    lay_luong_results(l, luong, way);
    l->work += per_pair(l) * (double)(4 * (concat ? luong->units : 0) + 2 * e + 8);
}

/* ---- */

/* Whether the layer would be another one without it. */
static bool is_choice(const char *name) {
    return strcmp(name, "fused") == 0 || strcmp(name, "output") == 0 || strcmp(name, "w_c") == 0;
}

/* One array is absent, misaligned, or a result where another array is. */
static void spoil_array(struct fuzzed_layer *l, struct input *input) {
    enum { ABSENT = 1, MISALIGNED = 2, ELSEWHERE = 3 };
    const uint8_t way = take_byte(input) % 8;
    const struct array *array = &l->arrays[take_byte(input) % l->count];
    char *to = NULL;
    if (way == ELSEWHERE && array->role != READ && array->bytes > 0) {
        const struct array *onto = &l->arrays[take_byte(input) % l->count];
        const size_t offset = 4 * (size_t)take_byte(input);
        if (onto == array || offset > onto->bytes || onto->bytes - offset < array->bytes)
            return;
        to = (char *)pointer_at(onto->place) + offset;
        l->overlaps = true;
        l->must_refuse |= l->kind == DOT_PRODUCT;
    } else if (way == MISALIGNED && array->dtype == RAPT_F32 && array->bytes > 0) {
        to = (char *)pointer_at(array->place) + 1 + array->bytes / 4 % 3;
    } else if (way != ABSENT || is_choice(array->name)) {
        return;
    }
    l->spoilt = way == ELSEWHERE && (uintptr_t)to % 4 == 0 ? NULL : array->name; /* masks lie anywhere */
    memcpy(array->place, &to, sizeof to);
}

void fuzzed_layer_decode(struct fuzzed_layer *l, struct input *input) {
    static void (*const decoders[])(struct fuzzed_layer *, struct input *) = {
        decode_dot_product, decode_multi_head, decode_stacked,   decode_encoder, decode_additive,
        decode_luong,       decode_layer_norm, decode_embedding, decode_keep};
    memset(l, 0, sizeof *l);
    l->kind = take_byte(input) % LAYER_KINDS;
    l->content = take_byte(input);
    decoders[l->kind](l, input);
    spoil_array(l, input);
}
