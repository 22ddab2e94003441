/* SPDX-License-Identifier: MIT
 * What the arrays of a scene hold, and which elements a result may depend on. */
#include <math.h>

#include "scene.h"

static uint64_t hash(const struct scene_call *call, enum scene_array_name name, const int64_t at[4]) {
    uint64_t h = call->seed * 31 + (uint64_t)name;
    for (int d = 0; d < 4; d++) {
        h = (h + (uint64_t)at[d] + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
        h = (h ^ (h >> 29)) * 0x94d049bb133111ebu;
        h ^= h >> 32;
    }
    return h;
}

/* In (-size, size). */
static double real(uint64_t h, float size) {
    return (float)((double)(h >> 40) / (1 << 23) - 1.0) * (size == 0 ? 1.0f : size);
}

static int64_t list_entry(const struct scene_call *call, enum scene_array_name name, int64_t b, int64_t below) {
    const int64_t at[4] = {0, 0, 0, b};
    return (int64_t)(hash(call, name, at) % (uint64_t)below);
}

int64_t scene_query_length(const struct scene_call *call, int64_t b) {
    if (!(call->with & WITH_QUERY_LENGTHS) || b == 0) {
        return call->query_length;
    }
    return list_entry(call, SCENE_QUERY_LENGTHS, b, call->query_length + 1);
}

int64_t scene_kv_length(const struct scene_call *call, int64_t b) {
    if (!(call->with & WITH_KV_LENGTHS)) {
        return call->kv_length;
    }
    return b == 0 ? call->kv_length - call->kv_length / 4
                  : list_entry(call, SCENE_KV_LENGTHS, b, call->kv_length + 1);
}

static int64_t key_position(const struct scene_call *call, int64_t b) {
    return call->with & WITH_KEY_POSITION ? list_entry(call, SCENE_KEY_POSITION, b, 700) : 0;
}

static int64_t query_position(const struct scene_call *call, int64_t b) {
    int64_t first = key_position(call, b);
    if (call->origin == RAPT_ORIGIN_BOTTOM_RIGHT) {
        return first + scene_kv_length(call, b) - scene_query_length(call, b);
    }
    if (call->origin == RAPT_ORIGIN_GIVEN) {
        return first + list_entry(call, SCENE_QUERY_POSITION, b, call->kv_length + 5) - 2;
    }
    return first;
}

static bool mask_at(const struct scene_call *call, int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t at[4] = {call->with & WITH_BROADCAST ? 0 : b, h, i, j};
    return !(call->with & WITH_MASK) || scene_element(call, SCENE_MASK, at) != 0;
}

static double bias_at(const struct scene_call *call, int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t at[4] = {b, call->with & WITH_BROADCAST ? 0 : h, i, j};
    return call->with & WITH_BIAS ? scene_element(call, SCENE_BIAS, at) : 0;
}

static bool in_range(const struct scene_call *call, int64_t b, int64_t i, int64_t j) {
    int64_t query = query_position(call, b) + i;
    int64_t key = key_position(call, b) + j;
    bool causal = !(call->with & WITH_CAUSAL) || key <= query;
    bool window = !(call->with & WITH_WINDOW) || (key >= query - 300 && key <= query + 5);
    return j < scene_kv_length(call, b) && causal && window;
}

bool scene_sees(const struct scene_call *call, int64_t b, int64_t h, int64_t i, int64_t j) {
    return in_range(call, b, i, j) && bias_at(call, b, h, i, j) != -INFINITY &&
           (mask_at(call, b, h, i, j) || (call->with & WITH_FILL));
}

double scene_element(const struct scene_call *call, enum scene_array_name name, const int64_t at[4]) {
    uint64_t h = hash(call, name, at);
    switch (name) {
    case SCENE_QUERY: return real(h, call->query_size);
    case SCENE_VALUE: return real(h, call->value_size);
    case SCENE_MASK: return at[3] % 7 == 3 || h % 4 == 0 ? 0 : (double)(1 + h / 4 % 255);
    case SCENE_KEEP: return h % 4 == 0 ? 0 : (double)(1 + h / 4 % 255);
    case SCENE_BIAS: return at[3] % 11 == 5 || h % 8 == 0 ? -INFINITY : real(h, 1);
    case SCENE_QUERY_LENGTHS: return (double)scene_query_length(call, at[3]);
    case SCENE_KV_LENGTHS: return (double)scene_kv_length(call, at[3]);
    case SCENE_QUERY_POSITION: return (double)query_position(call, at[3]);
    case SCENE_KEY_POSITION: return (double)key_position(call, at[3]);
    default: return real(h, 1);
    }
}

/* RAW and SOFTCAP weights show the scores of excluded pairs as well. */
static bool shows_every_score(const struct scene_call *call) {
    return (call->with & WITH_WEIGHTS) &&
           (call->weights_kind == RAPT_WEIGHTS_RAW || call->weights_kind == RAPT_WEIGHTS_SOFTCAP);
}

static bool kv_row_is_unused(const struct scene_call *call, bool key, int64_t b, int64_t kv_head, int64_t j) {
    if (j >= scene_kv_length(call, b)) {
        return true;
    }
    if (key && shows_every_score(call)) {
        return false;
    }
    int64_t group = call->query_heads / call->kv_heads;
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; h++) {
        for (int64_t i = 0; i < scene_query_length(call, b); i++) {
            if (scene_sees(call, b, h, i, j)) {
                return false;
            }
        }
    }
    return true;
}

/* A cell of a bias that is -infinity excludes, so it is never without effect. */
static bool bias_is_unused(const struct scene_call *call, const int64_t at[4]) {
    int64_t h_end = call->with & WITH_BROADCAST ? call->query_heads : at[1] + 1;
    if (scene_element(call, SCENE_BIAS, at) == -INFINITY) {
        return false;
    }
    for (int64_t h = at[1]; h < h_end; h++) {
        if (at[2] < scene_query_length(call, at[0]) && in_range(call, at[0], at[2], at[3]) &&
            mask_at(call, at[0], h, at[2], at[3])) {
            return false;
        }
    }
    return true;
}

bool scene_is_unused(const struct scene_call *call, enum scene_array_name name, const int64_t at[4]) {
    switch (name) {
    case SCENE_QUERY: return at[2] >= scene_query_length(call, at[0]);
    case SCENE_KEY: return kv_row_is_unused(call, true, at[0], at[1], at[2]);
    case SCENE_VALUE: return kv_row_is_unused(call, false, at[0], at[1], at[2]);
    case SCENE_BIAS: return bias_is_unused(call, at);
    default: return false;
    }
}
