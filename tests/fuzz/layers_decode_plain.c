/* SPDX-License-Identifier: MIT
 * Calls of layers that no rapt_attention_desc belongs to. */
#include "layers_decode.h"

enum { VALUE_DIM = 8, MASK = 16, WEIGHTS = 32, SCORES = 64, HOSTILE = 128, MOST_LEADING = 5 };

static void take_dot_fields(rapt_dot_product_desc *dot, uint8_t way, struct input *input) {
    static const int64_t lengths[] = {1, 2, 3, 5, 0, 17, 9, 33};
    const uint8_t sizes = take_byte(input), more = take_byte(input);
    dot->struct_size = sizeof *dot;
    dot->leading = way % 5;
    dot->isa = way & HOSTILE ? (int32_t)take_hostile(input) : 0;
    dot->query_length = lengths[sizes % 8], dot->kv_length = lengths[sizes / 8 % 8];
    dot->head_dim = take_size(input), dot->value_dim = way & VALUE_DIM ? take_size(input) : 0;
    dot->features = (more & 1 ? RAPT_SCALE : 0) | (more & 2 ? RAPT_CAUSAL : 0) | (more & 4 ? RAPT_MASK_FILL : 0);
    dot->query_origin = more / 8 % 4;
    if (more & 1)
        dot->scale = take_float(input);
    if (more & 4)
        dot->mask_fill = take_float(input);
    if (more & 32)
        dot->leading = (int32_t)take_hostile(input);
}

/* shape, of n numbers, is decoded. */
static void lay_mask(struct fuzzed_layer *l, rapt_dot_product_desc *dot, int n, struct input *input) {
    int64_t *mask_shape = new_room(l, (size_t)(n + 2) * sizeof *mask_shape);
    const uint8_t shared = take_byte(input);
    double bytes = 1;
    for (int i = 0; i < n + 2; i++)
        mask_shape[i] = i == n + 1 ? dot->kv_length : shared >> i & 1 ? 1 : i == n ? dot->query_length : dot->shape[i];
    spoil_number(input, (int64_t *const[]){&mask_shape[shared % (n + 2)]}, 1);
    for (int i = 0; i < n + 2; i++)
        bytes = times(bytes, mask_shape[i]);
    dot->mask_shape = mask_shape;
    lay(l, "mask", &dot->mask, READ, RAPT_BOOL8, bytes);
}

void decode_dot_product(struct fuzzed_layer *l, struct input *input) {
    static const int64_t counts[] = {1, 2, 3, 0};
    rapt_dot_product_desc *dot = l->desc = new_room(l, sizeof *dot);
    const uint8_t way = take_byte(input);
    take_dot_fields(dot, way, input);
    const int n = dot->leading < 0 || dot->leading > MOST_LEADING ? 0 : dot->leading;
    l->must_refuse |= dot->leading < 0 || dot->leading > RAPT_MAX_LEADING;
    l->lacks_memory |= dot->leading > MOST_LEADING && dot->leading <= RAPT_MAX_LEADING;
    int64_t *shape = new_room(l, (size_t)n * sizeof *shape);
    dot->shape = shape;
    for (int i = 0; i < n; i++)
        shape[i] = counts[take_byte(input) % 4];
    int64_t *const numbers[] = {&dot->query_length, &dot->kv_length, &dot->head_dim, &dot->value_dim,
                                n > 0 ? &shape[take_byte(input) % n] : &dot->kv_length};
    spoil_number(input, numbers, 5);
    double each = 1;
    for (int i = 0; i < n; i++)
        each = times(each, shape[i]);
    if (way & MASK)
        lay_mask(l, dot, n, input);
    const int64_t d = dot->head_dim, e = dot->value_dim ? dot->value_dim : d;
    const double queries = times(each, dot->query_length), keys = times(each, dot->kv_length);
    const double pairs = times(queries, dot->kv_length);
    READS("query", dot->query, times(queries, d));
    READS("key", dot->key, times(keys, d));
    READS("value", dot->value, times(keys, e));
    WRITES(OUT, "out", dot->out, times(queries, e));
    if (way & WEIGHTS)
        WRITES(OPTIONAL, "weights", dot->weights, pairs);
    if (way & SCORES)
        WRITES(OPTIONAL, "scores", dot->scores, pairs);
    l->work += (pairs + queries + each) * (double)(d + e);
}

void lay_norm(struct fuzzed_layer *l, const char *name, rapt_norm *norm, int64_t width, uint8_t way,
              struct input *input) {
    if (way & 1)
        READS(name, norm->gamma, product(width, 1, 1));
    if (way & 2)
        READS(name, norm->beta, product(width, 1, 1));
    norm->epsilon = way & 4 ? take_float(input) : 1e-5f;
}

void decode_layer_norm(struct fuzzed_layer *l, struct input *input) {
    struct norm_call *call = l->desc = new_room(l, sizeof *call);
    const uint8_t way = take_byte(input);
    call->tokens = take_byte(input) % 8, call->width = take_size(input);
    int64_t *const numbers[] = {&call->tokens, &call->width};
    spoil_number(input, numbers, 2);
    lay_norm(l, "norm", &call->norm, call->width, way, input);
    READS("x", call->x, product(call->tokens, call->width, 1));
    WRITES(OUT, "out", call->out, product(call->tokens, call->width, 1));
    if (way & 8) /* in place */
        call->out = (float *)(uintptr_t)call->x;
}

void decode_embedding(struct fuzzed_layer *l, struct input *input) {
    struct embedding_call *call = l->desc = new_room(l, sizeof *call);
    const uint8_t way = take_byte(input);
    const int64_t listed = take_byte(input) % 16;
    call->count = listed, call->rows = take_byte(input) % 8, call->width = take_size(input);
    int64_t *const numbers[] = {&call->count, &call->rows, &call->width};
    spoil_number(input, numbers, 3);
    const struct region *ids = make_list(&l->call, &call->ids, listed, way);
    for (int64_t i = 0; i < listed; i++) {
        const uint8_t id = take_byte(input);
        put_entry(ids, &call->ids, i, id > 250 ? take_hostile(input) : call->rows > 0 ? id % call->rows : 0);
    }
    if (way & 8)
        spoil_list(&call->ids, listed, input);
    l->lacks_memory |= call->count > listed && (!call->ids.count || call->ids.count > listed);
    READS("table", call->table, product(call->rows, call->width, 1));
    WRITES(OUT, "out", call->out, product(call->count, call->width, 1));
}

void decode_keep(struct fuzzed_layer *l, struct input *input) {
    static const double drops[] = {0, 0.1, 0.5, 0.999, 1, -0.1, 1e-300, -0.0};
    struct keep_call *call = l->desc = new_room(l, sizeof *call);
    const uint8_t way = take_byte(input);
    call->drop = drops[way % 8];
    call->count = take_byte(input);
    call->seed = take_word(input), call->stream = take_word(input), call->first = take_word(input);
    spoil_number(input, (int64_t *const[]){&call->count}, 1);
    lay(l, "keep", &call->keep, OUT, RAPT_BOOL8, product(call->count, 1, 1));
}

