/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 0xa5, POISON = 0xff, BLANK = 0 }; /* POISON bytes are a NaN */

static bool is_bool(int name) {
    return name == SCENE_MASK || name == SCENE_KEEP;
}

static bool is_list(int name) {
    return name >= SCENE_QUERY_LENGTHS && name <= SCENE_KEY_POSITION;
}

static bool is_output(int name) {
    return name >= SCENE_OUT;
}

static int64_t element_bytes(int name) {
    return is_bool(name) ? 1 : is_list(name) ? (name % 2 ? 8 : 4) : 4;
}

/* An origin that nothing counts from is refused. */
static rapt_query_origin origin_of(const struct scene_call *call) {
    return call->with & (WITH_CAUSAL | WITH_WINDOW | WITH_SLOPES) ? call->origin : RAPT_ORIGIN_UNSTATED;
}

static bool is_present(const struct scene_call *call, int name) {
    static const unsigned bits[SCENE_ARRAYS] = {
        [SCENE_MASK] = WITH_MASK,
        [SCENE_BIAS] = WITH_BIAS,
        [SCENE_KEEP] = WITH_KEEP,
        [SCENE_QUERY_LENGTHS] = WITH_QUERY_LENGTHS,
        [SCENE_KV_LENGTHS] = WITH_KV_LENGTHS,
        [SCENE_KEY_POSITION] = WITH_KEY_POSITION,
        [SCENE_FACTOR] = WITH_FACTOR,
        [SCENE_SLOPES] = WITH_SLOPES,
        [SCENE_SINKS] = WITH_SINKS,
        [SCENE_LSE] = WITH_LSE,
        [SCENE_WEIGHTS] = WITH_WEIGHTS,
    };
    if (name == SCENE_QUERY_POSITION) {
        return origin_of(call) == RAPT_ORIGIN_GIVEN;
    }
    return bits[name] == 0 || (call->with & bits[name]);
}

static void set_counts(const struct scene_call *call, int name, int64_t count[4]) {
    bool per_key_head = name == SCENE_KEY || name == SCENE_VALUE;
    bool vector = name >= SCENE_QUERY_LENGTHS && name <= SCENE_SINKS;
    bool broadcast = call->with & WITH_BROADCAST;
    count[0] = vector || (broadcast && name == SCENE_MASK) ? 1 : call->batch;
    count[1] = vector || (broadcast && name == SCENE_BIAS) ? 1 : per_key_head ? call->kv_heads : call->query_heads;
    count[2] = vector || (broadcast && name == SCENE_KEEP) ? 1 : per_key_head ? call->kv_length : call->query_length;
    switch (name) {
    case SCENE_QUERY:
    case SCENE_KEY: count[3] = call->head_dim; break;
    case SCENE_VALUE:
    case SCENE_OUT: count[3] = call->value_dim; break;
    case SCENE_LSE: count[3] = 1; break;
    default: count[3] = is_list(name) ? call->batch : vector ? call->query_heads : call->kv_length;
    }
}

/* Strides, and the bytes that the elements span. */
static int64_t set_strides(struct scene_array *array, int name, const struct scene_layout *layout) {
    static const int orders[2][4] = {{3, 2, 1, 0}, {3, 1, 2, 0}};
    int64_t stride = element_bytes(name), span = element_bytes(name);
    for (int k = 0; k < 4; k++) {
        int d = orders[layout->token_major][k];
        array->stride_bytes[d] = stride;
        stride = stride * array->count[d] + (k < 3 ? layout->padding * element_bytes(name) : 0);
        span += (array->count[d] - 1) * array->stride_bytes[d];
        if (array->count[d] == 0) {
            return 0;
        }
    }
    if (layout->reversed && !is_output(name)) {
        array->first_byte = (array->count[2] - 1) * array->stride_bytes[2];
        array->stride_bytes[2] = -array->stride_bytes[2];
    }
    return span;
}

static char *element(const struct scene_array *array, const int64_t at[4]) {
    int64_t byte = array->first_byte;
    for (int d = 0; d < 4; d++) {
        byte += at[d] * array->stride_bytes[d];
    }
    return array->memory.data + byte;
}

static bool next(const struct scene_array *array, int64_t at[4]) {
    for (int d = 3; d >= 0; d--) {
        if (++at[d] < array->count[d]) {
            return true;
        }
        at[d] = 0;
    }
    return false;
}

static void store(char *to, int name, double value) {
    float real = (float)value;
    int64_t integer = is_list(name) ? (int64_t)value : 0;
    int32_t small = (int32_t)integer;
    unsigned char byte = is_bool(name) ? (unsigned char)value : 0;
    const void *from = is_bool(name) ? (void *)&byte : !is_list(name) ? (void *)&real
                       : element_bytes(name) == 8 ? (void *)&integer : (void *)&small;
    memcpy(to, from, (size_t)element_bytes(name));
}

static void fill(struct scene *scene, int name) {
    struct scene_array *array = &scene->arrays[name];
    int64_t at[4] = {0}, row[3] = {-1, -1, -1};
    bool row_is_unused = false;
    if (is_output(name) || array->memory.bytes == 0) {
        return;
    }
    do {
        if (name == SCENE_BIAS || memcmp(row, at, sizeof row) != 0) {
            memcpy(row, at, sizeof row);
            row_is_unused = scene->layout.poison && scene_is_unused(&scene->call, name, at);
        }
        store(element(array, at), name, row_is_unused ? NAN : scene_element(&scene->call, name, at));
    } while (next(array, at));
}

static void make_array(struct scene *scene, int name) {
    struct scene_array *array = &scene->arrays[name];
    const struct scene_layout *layout = &scene->layout;
    if (is_present(&scene->call, name)) {
        set_counts(&scene->call, name, array->count);
        size_t bytes = (size_t)set_strides(array, name, layout);
        int content = is_output(name) ? CANARY : layout->poison ? POISON : BLANK;
        size_t distance = element_bytes(name) == 8 ? (layout->distance + 7) / 8 * 8 : layout->distance;
        array->memory = guarded_new(bytes, layout->side, distance, (unsigned char)content);
        fill(scene, name);
        if (!is_output(name)) {
            guarded_make_read_only(&array->memory);
        }
    }
}

static rapt_tensor tensor(const struct scene *scene, int name) {
    const struct scene_array *array = &scene->arrays[name];
    rapt_tensor result = {0};
    if (array->memory.data) {
        result.data = array->memory.data + array->first_byte;
        result.dtype = is_bool(name) ? RAPT_BOOL8 : RAPT_F32;
        result.batch_stride_bytes = array->count[0] == 1 ? 0 : array->stride_bytes[0];
        result.head_stride_bytes = array->count[1] == 1 ? 0 : array->stride_bytes[1];
        result.token_stride_bytes = array->count[2] == 1 ? 0 : array->stride_bytes[2];
        result.extent_bytes = array->first_byte ? 0 : (int64_t)array->memory.bytes;
    }
    return result;
}

static rapt_index_list list(const struct scene *scene, int name) {
    rapt_index_list result = {0};
    if (scene->arrays[name].memory.data) {
        result.data = scene->arrays[name].memory.data;
        result.index_bytes = (int32_t)element_bytes(name);
    }
    return result;
}

static void describe(struct scene *scene) {
    const struct scene_call *call = &scene->call;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.features = ((call->with & WITH_CAUSAL) ? RAPT_CAUSAL : 0) | ((call->with & WITH_WINDOW) ? RAPT_WINDOW : 0) |
                    ((call->with & WITH_FILL) ? RAPT_MASK_FILL : 0);
    desc.query_origin = origin_of(call);
    desc.batch = call->batch;
    desc.query_heads = call->query_heads;
    desc.kv_heads = call->kv_heads;
    desc.query_length = call->query_length;
    desc.kv_length = call->kv_length;
    desc.head_dim = call->head_dim;
    desc.value_dim = call->value_dim;
    desc.query = tensor(scene, SCENE_QUERY);
    desc.key = tensor(scene, SCENE_KEY);
    desc.value = tensor(scene, SCENE_VALUE);
    desc.out = tensor(scene, SCENE_OUT);
    desc.mask = tensor(scene, SCENE_MASK);
    desc.bias = tensor(scene, SCENE_BIAS);
    desc.keep_mask = tensor(scene, SCENE_KEEP);
    desc.lse = tensor(scene, SCENE_LSE);
    desc.weights = tensor(scene, SCENE_WEIGHTS);
    desc.query_lengths = list(scene, SCENE_QUERY_LENGTHS);
    desc.kv_lengths = list(scene, SCENE_KV_LENGTHS);
    desc.query_position = list(scene, SCENE_QUERY_POSITION);
    desc.key_position = list(scene, SCENE_KEY_POSITION);
    desc.bias_head_factor = (const float *)(void *)scene->arrays[SCENE_FACTOR].memory.data;
    desc.alibi_slopes = (const float *)(void *)scene->arrays[SCENE_SLOPES].memory.data;
    desc.sinks = (const float *)(void *)scene->arrays[SCENE_SINKS].memory.data;
    desc.softcap = (call->with & WITH_SOFTCAP) ? 0.75f : 0;
    desc.mask_fill = (call->with & WITH_FILL) ? -0.5f : 0;
    desc.keep_scale = (call->with & WITH_KEEP) ? 1.25f : 0;
    desc.weights_kind = (call->with & WITH_WEIGHTS) ? call->weights_kind : 0;
    desc.window_left = (call->with & WITH_WINDOW) ? 300 : 0;
    desc.window_right = (call->with & WITH_WINDOW) ? 5 : 0;
    scene->desc = desc;
}

struct scene *scene_new(const struct scene_call *call, const struct scene_layout *layout) {
    struct scene *scene = calloc(1, sizeof *scene);
    if (!scene) {
        perror("scene");
        exit(1);
    }
    scene->call = *call;
    scene->layout = *layout;
    for (int name = 0; name < SCENE_ARRAYS; name++) {
        make_array(scene, name);
    }
    describe(scene);
    return scene;
}

void scene_free(struct scene *scene) {
    for (int name = 0; scene && name < SCENE_ARRAYS; name++) {
        guarded_free(&scene->arrays[name].memory);
    }
    free(scene);
}

void scene_reset(struct scene *scene) {
    for (int name = SCENE_OUT; name < SCENE_ARRAYS; name++) {
        if (scene->arrays[name].memory.bytes) {
            memset(scene->arrays[name].memory.data, CANARY, scene->arrays[name].memory.bytes);
        }
    }
}

static const char *array_text(int name, const int64_t at[4]) {
    static char text[160];
    static const char *const names[] = {"out", "lse", "weights"};
    snprintf(text, sizeof text, "%s of sequence %lld, head %lld, query %lld, element %lld", names[name - SCENE_OUT],
             (long long)at[0], (long long)at[1], (long long)at[2], (long long)at[3]);
    return text;
}

bool scene_same(const struct scene *left, const struct scene *right) {
    for (int name = SCENE_OUT; name < SCENE_ARRAYS; name++) {
        const struct scene_array *a = &left->arrays[name], *b = &right->arrays[name];
        int64_t at[4] = {0};
        if (a->memory.bytes == 0) {
            continue;
        }
        do {
            const char *x = element(a, at), *y = element(b, at);
            if (at[2] < scene_query_length(&left->call, at[0]) && memcmp(x, y, 4) != 0) {
                float u, v;
                memcpy(&u, x, 4);
                memcpy(&v, y, 4);
                fprintf(stderr, "%s: %.9g and %.9g\n%s\n", array_text(name, at), (double)u, (double)v,
                        scene_text(&left->call));
                return false;
            }
        } while (next(a, at));
    }
    return true;
}

/* Whether all bytes of an output but those of its results are canaries. */
static bool output_is_clean(const struct scene *scene, int name) {
    const struct scene_array *array = &scene->arrays[name];
    bool clean = true;
    int64_t at[4] = {0};
    char *copy = malloc(array->memory.bytes + 1);
    memcpy(copy, array->memory.data, array->memory.bytes);
    do {
        if (at[2] < scene_query_length(&scene->call, at[0])) {
            memset(copy + (element(array, at) - array->memory.data), CANARY, 4);
        }
    } while (next(array, at));
    for (size_t byte = 0; clean && byte < array->memory.bytes; byte++) {
        clean = (unsigned char)copy[byte] == CANARY;
    }
    free(copy);
    return clean;
}

bool scene_is_clean(const struct scene *scene) {
    for (int name = 0; name < SCENE_ARRAYS; name++) {
        const struct guarded *memory = &scene->arrays[name].memory;
        bool beside = !memory->data || guarded_is_clean(memory);
        bool inside = !is_output(name) || memory->bytes == 0 || output_is_clean(scene, name);
        if (!beside || !inside) {
            fprintf(stderr, "array %d: bytes %s were written\n%s\n", name, beside ? "between rows" : "beside it",
                    scene_text(&scene->call));
            return false;
        }
    }
    return true;
}

bool scene_is_untouched(const struct scene *scene) {
    for (int name = SCENE_OUT; name < SCENE_ARRAYS; name++) {
        const struct guarded *memory = &scene->arrays[name].memory;
        for (size_t byte = 0; byte < memory->bytes; byte++) {
            if ((unsigned char)memory->data[byte] != CANARY) {
                return false;
            }
        }
    }
    return true;
}

const char *scene_text(const struct scene_call *call) {
    static char text[256];
    snprintf(text, sizeof text,
             "batch %lld, heads %lld / %lld, query_length %lld, kv_length %lld, head_dim %lld, value_dim %lld, "
             "with %#x, origin %d, weights_kind %d, seed %llu",
             (long long)call->batch, (long long)call->query_heads, (long long)call->kv_heads,
             (long long)call->query_length, (long long)call->kv_length, (long long)call->head_dim,
             (long long)call->value_dim, call->with, call->origin, call->weights_kind,
             (unsigned long long)call->seed);
    return text;
}
