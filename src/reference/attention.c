/* SPDX-License-Identifier: MIT
 *
 * The rows of order 1 (docs/numerics.md), composed of the steps in reference.c.
 * b = sequence, h = query head, i = query, j = key, d = dimension.
 */
#include "reference/order2.h"
#include "reference/rows.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK_KEYS = 256, CHUNK_KEYS = 512 };

static const float log2e = 0x1.715476p+0f;

/* What does not depend on the row (step 10), and room for one row. */
struct call {
    const rapt_attention_desc *desc;
    int64_t value_dim;
    float scale, factor; /* factor: of the dot product, scale * log2e or scale / softcap */
    float *s, *t, *p;    /* [kv_length] dot products, base-2 logits, probabilities */
    bool *attended;      /* [kv_length] */
    float *o_row, *o_chunk; /* [value_dim] */
    float *query, *out;     /* [head_dim], [value_dim]: of the row, in float32 */
};

static const float *floats_of(const rapt_tensor *tensor, int64_t b, int64_t h, int64_t token) {
    return (const float *)(const void *)rapt_reference_row(tensor, b, h, token);
}

/* Steps 1 and 2: s, t and attended of every key of the sequence. */
static void row_logits(const struct call *call, int64_t b, int64_t h, int64_t i, int64_t keys) {
    const rapt_attention_desc *desc = call->desc;
    const void *query = rapt_reference_query_row(desc, &desc->query, b, h, i);
    for (int64_t d = 0; d < desc->head_dim; d++) {
        call->query[d] = rapt_reference_number(desc->query.dtype, query, d);
    }
    int64_t kv_head = rapt_reference_kv_head(desc, h);
    struct rapt_reference_pair pair = rapt_reference_pair_of_head(desc, h);
    for (int64_t j = 0; j < keys; j++) {
        rapt_reference_pair_at(desc, &pair, b, h, i, j);
        float s = rapt_reference_dot(call->query, floats_of(&desc->key, b, kv_head, j), desc->head_dim);
        bool attended;
        call->s[j] = s;
        call->t[j] = rapt_reference_logit(s * call->factor, &pair, &attended);
        call->attended[j] = attended && rapt_reference_is_visible(desc, pair.distance, b, h, i, j);
    }
}

/* Step 6, dropout: acts on p in products with values, not in the sum l. */
static void drop(const struct call *call, int64_t b, int64_t h, int64_t i, int64_t begin, int64_t end) {
    const rapt_attention_desc *desc = call->desc;
    if (desc->keep_mask.data != NULL) {
        const char *keep = rapt_reference_query_row(desc, &desc->keep_mask, b, h, i);
        for (int64_t j = begin; j < end; j++) {
            call->p[j] = keep[j] != 0 ? call->p[j] * desc->keep_scale : 0.0f;
        }
    }
}

/* Steps 3 to 7: blocks into chunks, chunks into the row. Both are anchored at
 * logical position 0, so the first of a sequence may be short. */
static struct rapt_reference_state row_state(const struct call *call, int64_t b, int64_t h, int64_t i,
                                             int64_t keys) {
    const rapt_attention_desc *desc = call->desc;
    int64_t value_dim = call->value_dim;
    int64_t kv_head = rapt_reference_kv_head(desc, h);
    int64_t first_key = rapt_reference_first_key(desc, b);
    struct rapt_reference_state row = {-INFINITY, 0.0f, call->o_row}; /* before the first key */
    struct rapt_reference_state chunk = {-INFINITY, 0.0f, call->o_chunk};
    if (desc->initial_state.data != NULL) {
        const char *state = rapt_reference_query_row(desc, &desc->initial_state, b, h, i);
        rapt_reference_load_state(&row, (const float *)(const void *)state, value_dim);
    }
    for (int64_t j = 0, end; j < keys; j = end) {
        end = j + BLOCK_KEYS - (first_key + j) % BLOCK_KEYS;
        end = end < keys ? end : keys;
        if (j == 0 || (first_key + j) % CHUNK_KEYS == 0) {
            chunk.m = -INFINITY;
            chunk.l = 0.0f;
            for (int64_t d = 0; d < value_dim; d++) {
                chunk.o[d] = 0.0f;
            }
        }
        float alpha = rapt_reference_softmax(&chunk, call->t + j, call->attended + j, call->p + j, end - j);
        drop(call, b, h, i, j, end);
        const char *value = rapt_reference_row(&desc->value, b, kv_head, j);
        rapt_reference_weigh(chunk.o, alpha, call->p + j, call->attended + j, value,
                             desc->value.token_stride_bytes, end - j, value_dim);
        if (end == keys || (first_key + end) % CHUNK_KEYS == 0) {
            rapt_reference_fold(&row, &chunk, value_dim);
        }
    }
    return row;
}

/* Softmax weights of the finished row, in p. */
static void row_probabilities(const struct call *call, int64_t keys, float m, float inverse) {
    for (int64_t j = 0; j < keys; j++) {
        bool takes_part = call->attended[j] && inverse != 0.0f;
        call->p[j] = takes_part ? rapt_reference_exp2(call->t[j], m) * inverse : 0.0f;
    }
}

static void attention_row(const struct call *call, int64_t b, int64_t h, int64_t i) {
    const rapt_attention_desc *desc = call->desc;
    int64_t keys = rapt_reference_keys(desc, b);
    row_logits(call, b, h, i, keys);
    struct rapt_reference_state row = row_state(call, b, h, i, keys);
    rapt_reference_put_state(desc, b, h, i, &row, call->value_dim);
    if (desc->sinks != NULL) {
        rapt_reference_sink(&row, desc->sinks[h] * log2e, call->value_dim);
    }
    float inverse = rapt_reference_finish(&row, call->out, call->value_dim);
    rapt_reference_put_out(desc, b, h, i, call->out, call->value_dim);
    if (desc->weights_kind == RAPT_WEIGHTS_SOFTMAX) {
        row_probabilities(call, keys, row.m, inverse);
    }
    const struct rapt_reference_scores scores = {.s = call->s,
                                                 .t = call->t,
                                                 .softmax = call->p,
                                                 .attended = call->attended,
                                                 .scale = call->scale,
                                                 .factor = call->factor};
    rapt_reference_put_weights(desc, b, h, i, &scores);
}

static void attention(const rapt_attention_desc *desc) {
    struct call call = {.desc = desc};
    call.value_dim = desc->value_dim ? desc->value_dim : desc->head_dim;
    call.scale = desc->features & RAPT_SCALE ? desc->scale : 1.0f / sqrtf((float)desc->head_dim);
    call.factor = desc->softcap != 0.0f ? call.scale / desc->softcap : call.scale * log2e;
    call.s = rapt_reference_room(desc->kv_length, sizeof(float));
    call.t = rapt_reference_room(desc->kv_length, sizeof(float));
    call.p = rapt_reference_room(desc->kv_length, sizeof(float));
    call.attended = rapt_reference_room(desc->kv_length, sizeof(bool));
    call.o_row = rapt_reference_room(call.value_dim, sizeof(float));
    call.o_chunk = rapt_reference_room(call.value_dim, sizeof(float));
    call.query = rapt_reference_room(desc->head_dim, sizeof(float));
    call.out = rapt_reference_room(call.value_dim, sizeof(float));
    for (int64_t b = 0; b < desc->batch; b++) {
        for (int64_t h = 0; h < desc->query_heads; h++) {
            for (int64_t i = 0; i < rapt_reference_queries(desc, b); i++) {
                attention_row(&call, b, h, i);
            }
        }
    }
    free(call.s);
    free(call.t);
    free(call.p);
    free(call.attended);
    free(call.o_row);
    free(call.o_chunk);
    free(call.query);
    free(call.out);
}

void rapt_reference_attention(const rapt_attention_desc *desc) {
    rapt_attention_desc wide = *desc;
    const struct rapt_reference_copy copy = rapt_reference_widen(&wide);
    if (desc->numerics >= RAPT_NUMERICS_ORDER_2) {
        rapt_reference_order2(&wide);
    } else {
        attention(&wide);
    }
    free(copy.key);
    free(copy.value);
}
