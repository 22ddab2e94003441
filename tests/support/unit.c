/* SPDX-License-Identifier: MIT */
#include "support/unit.h"

#include "plan/work.h"
#include "support/cmocka_all.h"

static int64_t pick(struct random *random, const int64_t *numbers, int64_t count) {
    return numbers[random_below(random, count)];
}

void unit_set(struct unit_list *list, int64_t i, int64_t number) {
    list->wide[i] = number;
    list->narrow[i] = (int32_t)number;
}

static rapt_index_list draw_list(struct random *random, struct unit_list *list, int64_t first, int64_t last) {
    for (int64_t b = 0; b < UNIT_MOST_BATCH; b++)
        unit_set(list, b, random_chance(random, 15) ? first : random_between(random, first, last));
    const bool is_wide = random_chance(random, 50);
    return (rapt_index_list){.data = is_wide ? (const void *)list->wide : list->narrow, .index_bytes = is_wide ? 8 : 4};
}

static void draw_window(rapt_attention_desc *desc, struct random *random) {
    desc->features |= RAPT_WINDOW;
    desc->window_left = random_chance(random, 30) ? -1 : random_below(random, desc->kv_length + 2);
    desc->window_right = random_chance(random, 30) ? -1 : random_below(random, desc->kv_length + 2);
}

static void draw_lists(struct unit *unit, struct random *random) {
    rapt_attention_desc *desc = &unit->desc;
    if (random_chance(random, 50))
        desc->query_lengths = draw_list(random, &unit->query_lengths, 0, desc->query_length);
    if (random_chance(random, 60))
        desc->kv_lengths = draw_list(random, &unit->kv_lengths, 0, desc->kv_length);
    if (random_chance(random, 40))
        desc->key_position = draw_list(random, &unit->key_position, 0, 1500);
    if (desc->query_origin == RAPT_ORIGIN_GIVEN)
        desc->query_position =
            draw_list(random, &unit->query_position, -desc->query_length - 5, desc->kv_length + 1600);
}

void unit_draw(struct unit *unit, struct random *random, int64_t most_queries, int64_t most_keys) {
    static const int64_t groups[] = {1, 1, 2, 3, 4, 8}, dims[] = {1, 3, 15, 16, 17, 64, 128};
    static const int32_t origins[] = {RAPT_ORIGIN_TOP_LEFT, RAPT_ORIGIN_BOTTOM_RIGHT, RAPT_ORIGIN_GIVEN};
    const rapt_attention_desc none = RAPT_ATTENTION_DESC_INIT;
    rapt_attention_desc *desc = &unit->desc;
    *desc = none;
    desc->batch = random_chance(random, 5) ? 0 : random_between(random, 1, UNIT_MOST_BATCH);
    desc->kv_heads = random_between(random, 1, 3);
    desc->query_heads = desc->kv_heads * pick(random, groups, 6);
    desc->query_length = random_chance(random, 40) ? random_below(random, 5) : random_below(random, most_queries + 1);
    desc->kv_length = random_chance(random, 20) ? random_below(random, 3) : random_below(random, most_keys + 1);
    desc->head_dim = pick(random, dims, 7);
    desc->value_dim = pick(random, dims, 7);
    desc->query_origin = origins[random_below(random, 3)];
    desc->features = RAPT_SCALE;
    desc->scale = 0.5f;
    if (random_chance(random, 40))
        desc->features |= RAPT_CAUSAL;
    if (random_chance(random, 40))
        draw_window(desc, random);
    draw_lists(unit, random);
}

/* Strides in elements, innermost last. */
static void draw_strides(struct random *random, const int64_t *size, int64_t dim, int64_t *stride) {
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {2, 1, 0}};
    const int *order = orders[random_below(random, 3)];
    int64_t step = dim + random_below(random, 4);
    for (int i = 2; i >= 0; i--) {
        stride[order[i]] = step;
        step *= size[order[i]] > 0 ? size[order[i]] : 1;
        step += random_below(random, 4);
    }
}

rapt_tensor unit_tensor(struct random *random, int32_t dtype, int64_t batch, int64_t heads, int64_t tokens, int64_t dim,
                        bool read) {
    const int64_t size[3] = {batch, heads, tokens}, bytes = rapt_format_row_bytes(rapt_format_of(dtype), 1);
    int64_t stride[3] = {0}, last = dim, first = 0;
    draw_strides(random, size, dim, stride);
    for (int i = 0; i < 3; i++) {
        if (read && i < 2 && random_chance(random, 20))
            stride[i] = 0;
        last += size[i] > 0 ? (size[i] - 1) * stride[i] : 0;
    }
    if (read && tokens > 0 && random_chance(random, 30)) {
        first = (tokens - 1) * stride[2];
        stride[2] = -stride[2];
    }
    return (rapt_tensor){.data = (char *)test_alloc((size_t)(last * bytes)) + first * bytes,
                         .dtype = dtype,
                         .batch_stride_bytes = batch == 1 ? 0 : stride[0] * bytes,
                         .head_stride_bytes = heads == 1 ? 0 : stride[1] * bytes,
                         .token_stride_bytes = tokens == 1 ? 0 : stride[2] * bytes};
}

const char *unit_row(const rapt_tensor *tensor, int64_t batch, int64_t head, int64_t token) {
    const char *row = tensor->data;
    row += batch * tensor->batch_stride_bytes;
    row += head * tensor->head_stride_bytes;
    return row + token * tensor->token_stride_bytes;
}

static void fill(struct random *random, const rapt_tensor *tensor, int64_t batch, int64_t heads, int64_t tokens,
                 int64_t dim) {
    for (int64_t i = 0; i < batch * heads * tokens * dim; i++) {
        char *row = (char *)(uintptr_t)unit_row(tensor, i / dim / tokens / heads, i / dim / tokens % heads,
                                                i / dim % tokens);
        if (tensor->dtype == RAPT_F32)
            ((float *)(void *)row)[i % dim] = random_normal(random);
        else
            ((uint16_t *)(void *)row)[i % dim] = (uint16_t)random_bits(random) & 0xbbff; /* finite */
    }
}

void unit_add_inputs(struct unit *unit, struct random *random, int32_t dtype) {
    rapt_attention_desc *d = &unit->desc;
    d->query = unit_tensor(random, RAPT_F32, d->batch, d->query_heads, d->query_length, d->head_dim, true);
    d->key = unit_tensor(random, dtype, d->batch, d->kv_heads, d->kv_length, d->head_dim, true);
    d->value = unit_tensor(random, dtype, d->batch, d->kv_heads, d->kv_length, d->value_dim, true);
    fill(random, &d->key, d->batch, d->kv_heads, d->kv_length, d->head_dim);
    fill(random, &d->value, d->batch, d->kv_heads, d->kv_length, d->value_dim);
}

void unit_cut(struct unit *unit) {
    unit->body = (struct rapt_plan_body *)(void *)&unit->plan;
    unit->body->desc = unit->desc;
    assert_true(rapt_plan_make(unit->body, rapt_table_of(RAPT_ISA_SCALAR)));
}

struct rapt_sequence unit_sequence(const struct unit *unit, int64_t batch) {
    const rapt_attention_desc *d = &unit->desc;
    struct rapt_sequence s = {.query_length = d->query_length, .kv_length = d->kv_length};
    if (d->query_lengths.data)
        s.query_length = unit->query_lengths.wide[batch];
    if (d->kv_lengths.data)
        s.kv_length = unit->kv_lengths.wide[batch];
    if (d->key_position.data)
        s.key_position = unit->key_position.wide[batch];
    if (d->query_origin == RAPT_ORIGIN_TOP_LEFT)
        s.query_position = s.key_position;
    else if (d->query_origin == RAPT_ORIGIN_BOTTOM_RIGHT)
        s.query_position = /* changed lists may hold anything: the sum wraps */
            (int64_t)((uint64_t)s.key_position + (uint64_t)s.kv_length - (uint64_t)s.query_length);
    else
        s.query_position = unit->query_position.wide[batch];
    return s;
}

bool unit_sees(const struct unit *unit, const struct rapt_sequence *sequence, int64_t i, int64_t j) {
    const rapt_attention_desc *d = &unit->desc;
    const int64_t query = sequence->query_position + i, key = sequence->key_position + j;
    if (i < 0 || j < 0 || i >= sequence->query_length || j >= sequence->kv_length)
        return false;
    if ((d->features & RAPT_CAUSAL) && key > query)
        return false;
    if (!(d->features & RAPT_WINDOW))
        return true;
    return (d->window_left < 0 || query - key <= d->window_left) &&
           (d->window_right < 0 || key - query <= d->window_right);
}

float unit_widen(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31)
        return float_of(sign | 0x7f800000u | (fraction ? 0x00400000u | fraction << 13 : 0));
    const float magnitude = exponent ? (float)(1024 + fraction) * float_of((exponent + 102) << 23)
                                     : (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

float unit_number(int32_t dtype, const char *row, int64_t d) {
    return dtype == RAPT_F32 ? ((const float *)(const void *)row)[d]
                             : unit_widen(((const uint16_t *)(const void *)row)[d]);
}
