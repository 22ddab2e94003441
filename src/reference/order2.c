/* SPDX-License-Identifier: MIT
 *
 * Orders 2 and 3 of docs/numerics.md, and their specification. Every operation below is one float32 operation, or one
 * of the matrix unit (reference/unit.c). b = sequence, h = query head, i = query, j = key, d = dimension.
 */
#include "reference/order2.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/rows.h"

enum { BLOCK_KEYS = 128, CHUNK_KEYS = 512, LANES = 16 };

static const float log2e = 0x1.715476p+0f;

/* What does not depend on the row, and room for one row. */
struct call {
    const rapt_attention_desc *desc;
    bool is_split; /* order 3 */
    bool is_half;  /* order 2: float16, otherwise bfloat16 */
    bool is_plain; /* dot products are only scaled */
    int64_t value_dim;
    float scale, factor;     /* factor: what order 1 multiplies dot products with */
    float y_factor;          /* t = y * y_factor */
    float shift, unshift;    /* kappa, 2^-kappa */
    float chunk_factor;      /* of o, at the end of a chunk */
    float *s, *t, *y;        /* [kv_length] dot products, base-2 logits, what probabilities are made of */
    bool *attended, *kept;   /* [kv_length] */
    float *values;           /* [value_dim, BLOCK_KEYS] of a block, 0 where a pair is not attended */
    float *o_row, *o_chunk;  /* [value_dim] */
    float *query, *out;      /* [head_dim], [value_dim] */
};

static float dot(const struct call *call, const float *a, const float *b, int64_t count) {
    return call->is_split ? rapt_reference_unit_split(a, b, count) : rapt_reference_unit(a, b, count);
}

static float larger(const struct call *call, float m, float t) {
    return call->is_split ? rapt_reference_even_maximum(m, t) : t > m ? t : m;
}

static float alpha_of(const struct call *call, float k) {
    return call->is_split ? rapt_reference_pow2(k) : rapt_order2_alpha(k);
}

/* The probability of a key at the maximum m; in order 2 it is rounded to the type of the values. */
static float probability(const struct call *call, float y, float m) {
    if (call->is_split) {
        return rapt_reference_exp2(y, m);
    }
    float mu = m == -INFINITY ? 0.0f : m;
    float x = fabsf(mu) < 0x1p+22f ? fmaf(y, call->y_factor, -(mu - call->shift))
                                   : (y * call->y_factor - mu) + call->shift;
    float p = rapt_order2_exp2(x, call->is_half);
    uint16_t narrow;
    rapt_reference_store(call->desc->query.dtype, &p, 1, &narrow);
    return rapt_reference_number(call->desc->query.dtype, &narrow, 0);
}

/* Steps 1 and 2: s, t, y, attended and kept of every key of the sequence. */
static void row_logits(const struct call *call, int64_t b, int64_t h, int64_t i, int64_t keys) {
    const rapt_attention_desc *desc = call->desc;
    const void *query = rapt_reference_query_row(desc, &desc->query, b, h, i);
    const char *keep = desc->keep_mask.data ? rapt_reference_query_row(desc, &desc->keep_mask, b, h, i) : NULL;
    for (int64_t d = 0; d < desc->head_dim; d++) {
        call->query[d] = rapt_reference_number(desc->query.dtype, query, d);
    }
    struct rapt_reference_pair pair = rapt_reference_pair_of_head(desc, h);
    for (int64_t j = 0; j < keys; j++) {
        rapt_reference_pair_at(desc, &pair, b, h, i, j);
        const char *key = rapt_reference_row(&desc->key, b, rapt_reference_kv_head(desc, h), j);
        float s = dot(call, call->query, (const float *)(const void *)key, desc->head_dim);
        bool attended;
        call->s[j] = s;
        call->t[j] = rapt_reference_logit(s * call->factor, &pair, &attended);
        call->y[j] = call->is_plain && !call->is_split ? s : call->t[j];
        call->attended[j] = attended && rapt_reference_is_visible(desc, pair.distance, b, h, i, j);
        call->kept[j] = keep == NULL || keep[j] != 0;
    }
}

/* The sum of a chunk, in lanes. */
struct sums {
    float m, lane[LANES];
};

static float joined(const struct call *call, struct sums sums) {
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int c = 0; c < half; c++) {
            sums.lane[c] = sums.lane[c] + sums.lane[c + half];
        }
    }
    return sums.lane[0] * call->unshift;
}

/* Steps 3 to 6 for a block: keys [begin, end) of the sequence, of which the first is number `at` of the block. p gets
 * the probabilities; returns alpha. */
static float softmax(const struct call *call, struct sums *sums, int64_t begin, int64_t end, int64_t at, float *p) {
    float highest = -INFINITY;
    for (int64_t j = begin; j < end; j++) {
        if (call->attended[j]) {
            highest = call->t[j] > highest ? call->t[j] : highest;
        }
    }
    float m = larger(call, sums->m, highest);
    float alpha = alpha_of(call, sums->m - m);
    for (int j = 0; j < BLOCK_KEYS; j++) {
        p[j] = 0.0f;
    }
    for (int64_t j = begin; j < end; j++) {
        if (call->attended[j]) {
            p[at + j - begin] = probability(call, call->y[j], m);
        }
    }
    for (int c = 0; c < LANES; c++) {
        float l = sums->lane[c] * alpha;
        for (int j = 0; j < BLOCK_KEYS; j += RAPT_UNIT_TERMS) {
            bool is_pair = !call->is_half && !call->is_split;
            l = l + p[j + (is_pair ? 2 * c + 1 : c)];
            l = l + p[j + (is_pair ? 2 * c : LANES + c)];
        }
        sums->lane[c] = l;
    }
    sums->m = m;
    return alpha;
}

/* Step 6 for a block: o = o * alpha + p . values. */
static void weigh(const struct call *call, float *o, float alpha, int64_t b, int64_t h, int64_t begin, int64_t end,
                  int64_t at, float *p) {
    const rapt_tensor *value = &call->desc->value;
    memset(call->values, 0, (size_t)(call->value_dim * BLOCK_KEYS) * sizeof(float));
    for (int64_t j = begin; j < end; j++) {
        const char *row = rapt_reference_row(value, b, rapt_reference_kv_head(call->desc, h), j);
        for (int64_t d = 0; d < call->value_dim && call->attended[j]; d++) {
            call->values[d * BLOCK_KEYS + at + j - begin] = ((const float *)(const void *)row)[d];
        }
        if (!call->kept[j]) {
            p[at + j - begin] = 0.0f;
        }
    }
    for (int64_t d = 0; d < call->value_dim; d++) {
        float g = dot(call, p, call->values + d * BLOCK_KEYS, BLOCK_KEYS);
        o[d] = fmaf(o[d], alpha, g);
    }
}

static void close_chunk(const struct call *call, struct rapt_reference_state *row, const struct sums *sums) {
    struct rapt_reference_state chunk = {sums->m, joined(call, *sums), call->o_chunk};
    for (int64_t d = 0; d < call->value_dim; d++) {
        chunk.o[d] = chunk.o[d] * call->chunk_factor;
    }
    if (call->is_split) {
        rapt_reference_fold(row, &chunk, call->value_dim);
    } else {
        rapt_order2_fold(row, &chunk, call->value_dim);
    }
}

/* Blocks into chunks, chunks into the row. Both are anchored at logical position 0. */
static struct rapt_reference_state row_state(const struct call *call, int64_t b, int64_t h, int64_t i, int64_t keys) {
    const rapt_attention_desc *desc = call->desc;
    const int64_t first_key = rapt_reference_first_key(desc, b);
    struct rapt_reference_state row = {-INFINITY, 0.0f, call->o_row};
    struct sums sums = {0};
    float p[BLOCK_KEYS];
    if (desc->initial_state.data != NULL) {
        const char *state = rapt_reference_query_row(desc, &desc->initial_state, b, h, i);
        const float *numbers = (const float *)(const void *)state;
        if (call->is_split) {
            rapt_reference_load_state(&row, numbers, call->value_dim);
        } else {
            rapt_order2_load_state(&row, numbers, call->value_dim);
        }
    }
    for (int64_t j = 0, end; j < keys; j = end) {
        int64_t at = (first_key + j) % BLOCK_KEYS;
        end = j + BLOCK_KEYS - at < keys ? j + BLOCK_KEYS - at : keys;
        if (j == 0 || (first_key + j) % CHUNK_KEYS == 0) {
            sums = (struct sums){.m = -INFINITY};
            memset(call->o_chunk, 0, (size_t)call->value_dim * sizeof(float));
        }
        float alpha = softmax(call, &sums, j, end, at, p);
        weigh(call, call->o_chunk, alpha, b, h, j, end, at, p);
        if (end == keys || (first_key + end) % CHUNK_KEYS == 0) {
            close_chunk(call, &row, &sums);
        }
    }
    return row;
}

/* Softmax weights of the finished row, in y. */
static void row_probabilities(const struct call *call, int64_t keys, float m, float inverse) {
    for (int64_t j = 0; j < keys; j++) {
        bool takes_part = call->attended[j] && inverse != 0.0f;
        call->y[j] = takes_part ? probability(call, call->y[j], m) * call->unshift * inverse : 0.0f;
    }
}

static void attention_row(const struct call *call, int64_t b, int64_t h, int64_t i) {
    const rapt_attention_desc *desc = call->desc;
    int64_t keys = rapt_reference_keys(desc, b);
    row_logits(call, b, h, i, keys);
    struct rapt_reference_state row = row_state(call, b, h, i, keys);
    rapt_reference_put_state(desc, b, h, i, &row, call->value_dim);
    if (desc->sinks != NULL) {
        (call->is_split ? rapt_reference_sink : rapt_order2_sink)(&row, desc->sinks[h] * log2e, call->value_dim);
    }
    float inverse = rapt_reference_finish(&row, call->out, call->value_dim);
    rapt_reference_put_out(desc, b, h, i, call->out, call->value_dim);
    if (desc->weights_kind == RAPT_WEIGHTS_SOFTMAX) {
        row_probabilities(call, keys, row.m, inverse);
    }
    const struct rapt_reference_scores scores = {.s = call->s,
                                                 .t = call->t,
                                                 .softmax = call->y,
                                                 .attended = call->attended,
                                                 .scale = call->scale,
                                                 .factor = call->factor};
    rapt_reference_put_weights(desc, b, h, i, &scores);
}

static void set_constants(struct call *call) {
    const rapt_attention_desc *desc = call->desc;
    call->is_split = desc->numerics == RAPT_NUMERICS_ORDER_3;
    call->is_half = desc->query.dtype == RAPT_F16 && !call->is_split;
    call->value_dim = desc->value_dim ? desc->value_dim : desc->head_dim;
    call->scale = desc->features & RAPT_SCALE ? desc->scale : 1.0f / sqrtf((float)desc->head_dim);
    call->factor = desc->softcap != 0.0f ? call->scale / desc->softcap : call->scale * log2e;
    call->is_plain = desc->softcap == 0.0f && !desc->bias.data && !desc->alibi_slopes &&
                     !(desc->features & (RAPT_ALIBI_STANDARD | RAPT_MASK_FILL));
    call->y_factor = call->is_plain ? call->factor : 1.0f;
    call->shift = call->is_half ? 15.0f : 0.0f;
    call->unshift = call->is_half ? 0x1p-15f : 1.0f;
    call->chunk_factor = desc->keep_mask.data ? desc->keep_scale * call->unshift : call->unshift;
}

void rapt_reference_order2(const rapt_attention_desc *desc) {
    struct call call = {.desc = desc};
    set_constants(&call);
    float *of_keys = rapt_reference_room(3 * desc->kv_length, sizeof(float));
    bool *flags = rapt_reference_room(2 * desc->kv_length, sizeof(bool));
    float *of_dims = rapt_reference_room(desc->head_dim + 3 * call.value_dim, sizeof(float));
    call.s = of_keys;
    call.t = call.s + desc->kv_length;
    call.y = call.t + desc->kv_length;
    call.attended = flags;
    call.kept = flags + desc->kv_length;
    call.values = rapt_reference_room(call.value_dim * BLOCK_KEYS, sizeof(float));
    call.o_row = of_dims;
    call.o_chunk = call.o_row + call.value_dim;
    call.out = call.o_chunk + call.value_dim;
    call.query = call.out + call.value_dim;
    for (int64_t b = 0; b < desc->batch; b++) {
        for (int64_t h = 0; h < desc->query_heads; h++) {
            for (int64_t i = 0; i < rapt_reference_queries(desc, b); i++) {
                attention_row(&call, b, h, i);
            }
        }
    }
    free(of_keys);
    free(flags);
    free(of_dims);
    free(call.values);
}
