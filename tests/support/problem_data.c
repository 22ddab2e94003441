/* SPDX-License-Identifier: MIT */
#include "support/problem_data.h"

#include <math.h>
#include <stdlib.h>

#include "reference/reference.h"
#include "support/stored.h"

struct random number_sequence(const struct problem_call *call, int number) {
    return (struct random){call->seed * 1000003u + (uint64_t)number * 7919u};
}

/* Lists have no sequence of their own. */
static int number_of(enum array_name name) {
    return name < ARRAY_TREE_MASKS ? (int)name : (int)name - (ARRAY_INITIAL_STATE - ARRAY_TREE_MASKS);
}

static bool is_map(enum array_name name) { return name >= ARRAY_MASK && name <= ARRAY_KEEP; }
static bool is_bool(enum array_name name) { return name == ARRAY_MASK || name == ARRAY_KEEP; }
static bool is_head_list(enum array_name name) { return name >= ARRAY_FACTOR && name <= ARRAY_SINKS; }
static bool is_index_list(enum array_name name) {
    return name >= ARRAY_QUERY_LENGTHS && name <= ARRAY_BLOCK_ENTRIES;
}

/* ---- rows */

static float row_factor(enum data_kind kind, enum array_name name, struct random *random) {
    bool is_chosen = random_chance(random, 12);
    switch (kind) {
    case DATA_HUGE_ROWS:
        return is_chosen ? 1e4f : 1.0f;
    case DATA_INFINITE:
        return is_chosen && name != ARRAY_VALUE ? 1e25f : 1.0f;
    case DATA_MINUS_INFINITE:
        return name == ARRAY_QUERY ? 1e25f : name == ARRAY_KEY ? -1e25f : 1.0f;
    case DATA_DENORMAL:
        return name == ARRAY_QUERY ? 1.0f : 0x1p-138f;
    case DATA_LOUD:
        return name == ARRAY_QUERY ? 12.0f : 1.0f;
    case DATA_BIG:
        return name == ARRAY_VALUE ? 1.0f : 5e3f;
    case DATA_LATE_BIG:
        return name == ARRAY_KEY ? 1e8f : 1.0f;
    case DATA_TINY:
        return name == ARRAY_VALUE ? is_chosen ? 0x1p-118f : 0x1p-124f : name == ARRAY_KEY ? 0x1p-62f : 0x1p-63f;
    case DATA_SMALL:
        return name == ARRAY_VALUE ? 0x1p-124f : is_chosen ? 0x1p-66f : 0x1p-60f;
    default:
        return 1.0f;
    }
}

static void draw_row(float *row, int64_t count, enum data_kind kind, enum array_name name, struct random *random) {
    static const uint32_t bad[] = {0x7fc00000u, 0xffc00001u, 0x7f800000u, 0xff800000u};
    float factor = row_factor(kind, name, random);
    bool is_positive = kind == DATA_MINUS_INFINITE && name != ARRAY_VALUE;
    if (is_positive && name == ARRAY_KEY && random_chance(random, 5))
        factor = -1e-25f;
    for (int64_t d = 0; d < count; d++) {
        float x = random_normal(random);
        row[d] = (is_positive ? fabsf(x) : x) * factor;
        if (kind == DATA_SPECIAL && random_chance(random, 4))
            row[d] = random_special(random);
    }
    bool may_be_bad =
        (kind == DATA_NAN_ROWS && name != ARRAY_QUERY) || (kind == DATA_MINUS_INFINITE && !is_positive);
    if (may_be_bad && random_chance(random, 6))
        row[random_below(random, count)] = float_of(bad[random_below(random, 4)]);
}

/* How a mask or a bias looks, chosen once for the whole array. */
enum mask_kind { SOME_FALSE, ALL_TRUE, ALL_FALSE, FALSE_ROWS, FALSE_BLOCKS, ONE_TRUE, MASK_KINDS };
enum bias_kind { FINITE, WITH_HOLES, LOWEST_ROWS, EMPTY_ROWS, SPECIAL, ZEROS, BIAS_KINDS };

static void draw_flags(uint8_t *row, int64_t count, uint64_t array_seed, struct random *random) {
    struct random array = {array_seed};
    enum mask_kind kind = (enum mask_kind)random_below(&array, MASK_KINDS);
    bool is_false_row = kind == FALSE_ROWS && random_chance(random, 30);
    int64_t chosen = count ? random_below(random, count) : 0;
    for (int64_t j = 0; j < count; j++) {
        bool is_true = random_chance(random, kind == SOME_FALSE ? 50 : 85);
        is_true = kind == ALL_TRUE ? true : kind == ALL_FALSE || is_false_row ? false : is_true;
        is_true = kind == FALSE_BLOCKS ? j / 256 % 2 == 1 : kind == ONE_TRUE ? j == chosen : is_true;
        row[j] = is_true ? (uint8_t)(1 + (j * 37 + chosen) % 255) : 0;
    }
}

static void draw_bias(float *row, int64_t count, uint64_t array_seed, bool is_benign, struct random *random) {
    struct random array = {array_seed};
    enum bias_kind kind = (enum bias_kind)random_below(&array, is_benign ? SPECIAL : BIAS_KINDS);
    bool is_chosen = random_chance(random, 30);
    for (int64_t j = 0; j < count; j++) {
        row[j] = random_normal(random);
        if ((kind == WITH_HOLES && random_chance(random, 30)) || (kind == EMPTY_ROWS && is_chosen))
            row[j] = -INFINITY;
        if (kind == LOWEST_ROWS && is_chosen)
            row[j] = -0x1.fffffep+127f;
        if (kind == SPECIAL && random_chance(random, 2))
            row[j] = random_special(random);
        if (kind == ZEROS) /* blocks of zeros of either sign, next to blocks with holes */
            row[j] = j / 256 % 2 && is_chosen ? -INFINITY : random_chance(random, 50) ? 0.0f : -0.0f;
    }
}

/* l = 0 is an empty state, whatever else it holds. States that no call writes are legal, too. */
static void draw_state(float *row, int64_t count, enum data_kind kind, struct random *random) {
    static const float maxima[] = {0, 2, -2, 4, 40, -126, 254, 0x1p22f, -0x1p30f, 0x1p127f};
    static const float odd[] = {1, -0.5f, INFINITY, -INFINITY, NAN, 0x1p-140f, 0x1.fffffep+21f, -0.0f};
    static const float sums[] = {-1, -0.0f, 0x1p-130f, 0x1p-126f, 0x1p127f, INFINITY, NAN, -INFINITY};
    const bool is_empty = random_chance(random, 15), is_odd = kind != DATA_NORMAL && random_chance(random, 10);
    row[0] = maxima[kind == DATA_NORMAL ? random_below(random, 5) : random_below(random, 10)];
    row[1] = 0.25f + 20 * fabsf(random_normal(random));
    for (int64_t d = 2; d < count; d++)
        row[d] = is_odd && random_chance(random, 5) ? random_special(random) : row[1] * random_normal(random);
    if (is_odd)
        row[random_below(random, 2)] = random_chance(random, 50) ? odd[random_below(random, 8)]
                                                                 : sums[random_below(random, 8)];
    if (is_empty)
        row[0] = random_special(random), row[1] = random_chance(random, 50) ? 0.0f : -0.0f;
}

static void draw_head_list(float *list, int64_t heads, enum array_name name, struct random *random) {
    static const float sinks[] = {0, 2.5f, -3, -INFINITY, 1e9f, -1e30f, 1e38f, 40, -0.0f};
    for (int64_t h = 0; h < heads; h++)
        list[h] = name == ARRAY_SINKS         ? sinks[random_below(random, 9)]
                  : random_chance(random, 10) ? 0.0f
                                              : random_normal(random) * (name == ARRAY_SLOPES ? 0.1f : 1.0f);
}

/* ---- few keys */

/* Whether a row allows a key: single ones, or runs. */
static bool is_kept(uint64_t row_seed, int64_t j) {
    static const int64_t runs[] = {1, 3, 20, 64};
    struct random random = {row_seed};
    const int64_t run = runs[random_below(&random, 4)];
    random.state += (uint64_t)(j / run) * 0x9e3779b97f4a7c15u;
    return random_chance(&random, 6);
}

/* Rows share their keys, or differ. */
static void make_sparse(void *row, int64_t count, int32_t dtype, uint64_t array_seed, struct random *random) {
    const uint64_t own = random_bits(random), seed = array_seed & 64 ? array_seed : own;
    for (int64_t j = 0; j < count; j++) {
        if (is_kept(seed, j))
            continue;
        if (dtype == RAPT_F32)
            ((float *)row)[j] = -INFINITY;
        else if (dtype == RAPT_BOOL8)
            ((uint8_t *)row)[j] = 0;
        else
            ((uint16_t *)row)[j] = dtype == RAPT_F16 ? 0xfc00 : 0xff80; /* -infinity */
    }
}

/* ---- arrays */

void set_index(const struct problem_array *array, int64_t i, int64_t index) {
    if (array->element_bytes == 4)
        ((int32_t *)(void *)array->memory.data)[i] = (int32_t)index;
    else
        ((int64_t *)(void *)array->memory.data)[i] = index;
}

/* The format of keys or values; float32 for all other arrays. */
static int format_of(const struct problem_call *call, enum array_name name) {
    return name == ARRAY_KEY ? call->key_format : name == ARRAY_VALUE ? call->value_format : RAPT_FORMAT_F32;
}

static bool is_scales(enum array_name name) { return name >= ARRAY_KEY_SCALES && name <= ARRAY_VALUE_ZEROS; }
static bool is_zeros(enum array_name name) { return name == ARRAY_KEY_ZEROS || name == ARRAY_VALUE_ZEROS; }

/* Scales per row. */
static int64_t groups_of(const struct problem_call *call, enum array_name name) {
    const bool is_key = name == ARRAY_KEY_SCALES || name == ARRAY_KEY_ZEROS;
    const int64_t dim = is_key ? call->head_dim : call->value_dim;
    const int64_t group = is_key ? call->key_scales : call->value_scales;
    return group <= 1 ? 1 : (dim + group - 1) / group;
}

void logical_counts(const struct problem_call *call, enum array_name name, int64_t count[4]) {
    const bool is_kv = name == ARRAY_KEY || name == ARRAY_VALUE || is_scales(name);
    if (is_head_list(name) || is_index_list(name)) {
        count[0] = count[1] = count[2] = 1;
        count[3] = is_head_list(name) ? call->query_heads : count_indices(call, name);
        return;
    }
    count[0] = call->batch;
    count[1] = is_kv ? call->kv_heads : call->query_heads;
    count[2] = is_kv ? call->kv_length : call->query_length;
    count[3] = name == ARRAY_QUERY || name == ARRAY_KEY    ? call->head_dim
               : name == ARRAY_VALUE || name == ARRAY_OUT ? call->value_dim
               : name == ARRAY_LSE                        ? 1
               : name == ARRAY_INITIAL_STATE || name == ARRAY_FINAL_STATE ? 2 + call->value_dim
                                                          : call->kv_length;
    if (is_scales(name))
        count[3] = groups_of(call, name);
    else if (is_kv)
        count[3] /= rapt_format_info(format_of(call, name))->elements;
}

/* The first number of a sequence decides the array's kind; head lists have none. */
struct random random_of(const struct problem_call *call, enum array_name name) {
    struct random random = number_sequence(call, is_index_list(name) ? LISTS_SEQUENCE : number_of(name));
    if (!is_head_list(name))
        random_bits(&random);
    return random;
}

static uint64_t array_seed_of(const struct problem_call *call, enum array_name name) {
    struct random random = number_sequence(call, number_of(name));
    return random_bits(&random);
}

static bool is_far(const struct problem_call *call) {
    struct random random = number_sequence(call, LISTS_SEQUENCE);
    return random_chance(&random, 20);
}

static int32_t dtype_of(const struct problem_call *call, enum array_name name) {
    static const int32_t dtypes[] = {RAPT_F16, RAPT_BF16};
    const unsigned narrow = name == ARRAY_QUERY  ? USE_QUERY_16
                            : name == ARRAY_BIAS ? USE_BIAS_16
                            : name == ARRAY_OUT  ? USE_OUT_16
                                                 : 0;
    struct random random = {call->seed * 31 + (uint64_t)name};
    if (name == ARRAY_QUERY && call->numerics == RAPT_NUMERICS_ORDER_2)
        return stored_dtype(call->key_format);
    if (name == ARRAY_KEY || name == ARRAY_VALUE)
        return stored_dtype(format_of(call, name));
    if (call->use & narrow)
        return dtypes[random_below(&random, sizeof dtypes / sizeof *dtypes)];
    return is_bool(name) ? RAPT_BOOL8 : is_zeros(name) ? RAPT_I8 : RAPT_F32;
}

void draw_shape(struct problem_array *array, const struct problem_call *call, enum array_name name,
                struct random *random) {
    logical_counts(call, name, array->count);
    for (int dim = 0; dim < 3 && (is_map(name) || name == ARRAY_INITIAL_STATE); dim++)
        if (array->count[dim] > 0 && random_chance(random, 35))
            array->count[dim] = 1;
    array->dtype = dtype_of(call, name);
    const struct rapt_format_info *info = rapt_format_info(rapt_format_of(array->dtype));
    array->element_bytes = is_index_list(name) ? random_chance(random, 50) ? 4 : 8 : info->bytes;
    if (name == ARRAY_TREE_MASKS && drawn_tree_tokens(call) > 32)
        array->element_bytes = 8;
}

static void draw_indices(const struct problem_array *array, const struct problem_call *call, enum array_name name,
                         struct random *random) {
    const int64_t position = is_far(call) ? (int64_t)1 << 30 : 0;
    const int64_t start = call->use & USE_KEY_POSITION ? position : 0;
    const int64_t first = name == ARRAY_KEY_POSITION ? position : name == ARRAY_QUERY_POSITION ? start - 20 : 0;
    const int64_t last = name == ARRAY_QUERY_LENGTHS  ? call->query_length
                         : name == ARRAY_KV_LENGTHS   ? call->kv_length
                         : name == ARRAY_KEY_POSITION ? position + 700
                                                      : start + call->kv_length + 300;
    for (int64_t b = 0; b < call->batch; b++) {
        const int64_t entry = random_between(random, first, last);
        set_index(array, b, entry);
    }
}

/* Sized so that numbers are ordinary. */
static void draw_scales(float *row, int64_t count, int format, bool special, struct random *random) {
    const float size = rapt_format_info(format)->uses & RAPT_MUST_SCALE ? 0.01f : 1.0f;
    for (int64_t i = 0; i < count; i++)
        row[i] = special && random_chance(random, 2) ? random_special(random) : random_uniform(random) * size;
}

static bool has_special(enum data_kind kind) {
    return kind == DATA_NAN_ROWS || kind == DATA_MINUS_INFINITE || kind == DATA_SPECIAL;
}

/* Whether an array has numbers of its kind of data in a 16-bit type. */
static bool is_narrow(const struct problem_call *call, enum array_name name, int32_t dtype) {
    const bool is_stored = name == ARRAY_KEY || name == ARRAY_VALUE;
    return (name == ARRAY_QUERY || name == ARRAY_BIAS || (is_stored && call->numerics == RAPT_NUMERICS_ORDER_2)) &&
           dtype != RAPT_F32;
}

/* A row of a 16-bit type; finite numbers stay finite. */
static void draw_narrow(void *row, const struct problem_array *array, const struct problem_call *call,
                        enum data_kind kind, enum array_name name, struct random *random) {
    const float most = array->dtype == RAPT_F16 ? 65504.0f : 0x1.fep+127f;
    const int64_t count = array->count[3];
    float *wide = calloc((size_t)count + 1, sizeof *wide);
    if (!wide)
        abort();
    if (name == ARRAY_BIAS)
        draw_bias(wide, count, array_seed_of(call, name), call->data == DATA_NORMAL, random);
    else
        draw_row(wide, count, kind, name, random);
    for (int64_t j = 0; j < count; j++)
        if (isfinite(wide[j]) && fabsf(wide[j]) > most)
            wide[j] = copysignf(most, wide[j]);
    rapt_reference_store(array->dtype, wide, count, row);
    free(wide);
}

void draw_array(const struct problem_array *array, const struct problem_call *call, enum array_name name,
                struct random *random) {
    const uint64_t array_seed = array_seed_of(call, name);
    const int64_t rows = array->count[0] * array->count[1] * array->count[2], count = array->count[3];
    if (name >= ARRAY_TREE_MASKS && is_index_list(name)) {
        draw_selection(array, call, name, random);
        return;
    }
    if (is_index_list(name)) {
        draw_indices(array, call, name, random);
        return;
    }
    random->state += call->variant * 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < rows; i++) {
        void *row = array->memory.data + i * count * array->element_bytes;
        const bool early = call->data == DATA_LATE_BIG && i % array->count[2] < 128;
        const enum data_kind kind = early ? DATA_NORMAL : call->data;
        if (is_narrow(call, name, array->dtype))
            draw_narrow(row, array, call, kind, name, random);
        else if (is_bool(name))
            draw_flags(row, count, array_seed, random);
        else if (name == ARRAY_BIAS)
            draw_bias(row, count, array_seed, call->data == DATA_NORMAL, random);
        else if (name == ARRAY_INITIAL_STATE)
            draw_state(row, count, call->data, random);
        else if (is_head_list(name))
            draw_head_list(row, count, name, random);
        else if (is_zeros(name))
            for (int64_t g = 0; g < count; g++)
                ((int8_t *)row)[g] = (int8_t)random_bits(random);
        else if (is_scales(name))
            draw_scales(row, count, name == ARRAY_KEY_SCALES ? call->key_format : call->value_format,
                        has_special(call->data), random);
        else if (format_of(call, name) != RAPT_FORMAT_F32)
            stored_draw(random, format_of(call, name), row, count, has_special(call->data));
        else
            draw_row(row, count, kind, name, random);
        if ((call->use & USE_SPARSE) && (name == ARRAY_MASK || name == ARRAY_BIAS))
            make_sparse(row, count, array->dtype, array_seed, random);
    }
}
