/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/tool.h"
#include "files/npy.h"
#include "heatmap/heatmap.h"
#include "layer/tokens.h"

static struct npy_array read_weights(const char *path, int64_t full[4]) {
    struct npy_array array = npy_read(path, NPY_FLOAT16 | NPY_FLOAT32 | NPY_FLOAT64);
    char shape[NPY_SHAPE_TEXT];
    npy_shape_text(array.dims, array.shape, shape);
    if (array.dims < 2 || array.dims > 4) tool_die("%s %s: expected 2, 3 or 4 dimensions", path, shape);
    if (array.count == 0) tool_die("%s %s: there is nothing to draw", path, shape);
    for (int i = 0; i < 4; i++) full[i] = i < 4 - array.dims ? 1 : array.shape[i - (4 - array.dims)];
    return array;
}

static const float *as_float32(const struct npy_array *array, int64_t first, int64_t count) {
    if (array->type == NPY_FLOAT32) return (const float *)array->data + first;
    float *weights = tool_allocate(count, sizeof *weights, array->path);
    const double *numbers = npy_doubles(array);
    for (int64_t i = 0; i < count; i++) weights[i] = (float)numbers[first + i];
    return weights;
}

static char **number_texts(int64_t count) {
    char **texts = tool_allocate(count, sizeof *texts, "labels");
    char *text = tool_allocate(count, 24, "labels");
    for (int64_t i = 0; i < count; i++) {
        texts[i] = text + 24 * i;
        snprintf(texts[i], 24, "%lld", (long long)i);
    }
    return texts;
}

/* One text each for count things; hint: what to do if another number of lines is intended. */
static char **fit_texts(const char *path, struct token_list tokens, const struct npy_array *array, int64_t count,
                        const char *what, const char *hint) {
    char shape[NPY_SHAPE_TEXT];
    if (path == NULL) return number_texts(count);
    if (tokens.count == count) return tokens.texts;
    tool_die("%s: %lld line%s for the %lld %s of %s %s%s", path, (long long)tokens.count, tokens.count == 1 ? "" : "s",
             (long long)count, what, array->path, npy_shape_text(array->dims, array->shape, shape), hint);
}

/* A file that names both is read once: it may be a pipe. */
static void read_texts(struct heatmap *map, const struct heatmap_options *options, const struct npy_array *array) {
    const char *both = options->tokens, *keys = options->key_tokens;
    const int64_t most = map->queries > map->keys ? map->queries : map->keys;
    struct token_list tokens = {0};
    if (both) tokens = tokens_read(both, most);
    map->query_texts = fit_texts(both, tokens, array, map->queries, "queries", "");
    if (keys)
        map->key_texts = fit_texts(keys, tokens_read(keys, map->keys), array, map->keys, "keys", "");
    else
        map->key_texts = fit_texts(both, tokens, array, map->keys, "keys", "; --key-tokens FILE names the keys");
}

static void find_range(struct heatmap *map) {
    const float rounding = 1e-5f; /* weights of sum 1 may exceed 1 by this */
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < map->heads * map->queries * map->keys; i++) {
        float weight = map->weights[i];
        map->nans += isnan(weight) != 0;
        map->infinities += isinf(weight) != 0;
        if (!isfinite(weight)) continue;
        if (weight < least) least = weight;
        if (weight > most) most = weight;
    }
    map->probabilities = least > most || (least >= 0 && most <= 1 + rounding);
    map->low = map->probabilities || least == most ? fminf(least, 0) : least;
    map->high = map->probabilities || least == most ? fmaxf(most, 0) : most;
    if (map->low == map->high) map->high = 1;
    for (int64_t i = 0; i < map->heads * map->queries * map->keys; i++)
        map->unseen += heatmap_unseen(map, map->weights[i]);
}

static const char *usual_title(const struct heatmap *map, int64_t heads) {
    enum { BYTES = 64 };
    char *title = tool_allocate(BYTES, 1, "a title");
    const char *what = map->probabilities ? "Attention weights" : "Attention scores";
    if (heads == 1)
        strcpy(title, what);
    else if (map->heads == 1)
        snprintf(title, BYTES, "%s, head %lld", what, (long long)map->first_head);
    else
        snprintf(title, BYTES, "%s, %lld heads", what, (long long)map->heads);
    return title;
}

struct heatmap heatmap_load(const struct heatmap_options *options) {
    int64_t full[4];
    struct npy_array array = read_weights(options->attention, full);
    bool all = options->head && strcmp(options->head, "all") == 0;
    int64_t head = options->head && !all ? option_to_integer("head", options->head) : 0;
    option_index("head", head, &array, full[1], "head");
    int64_t batch = option_index("batch", options->batch.value, &array, full[0], "sequence");
    struct heatmap map = {.path = options->attention, .first_head = head, .heads = all ? full[1] : 1,
                          .queries = full[2], .keys = full[3]};
    int64_t first = (batch * full[1] + head) * map.queries * map.keys;
    map.weights = as_float32(&array, first, map.heads * map.queries * map.keys);
    read_texts(&map, options, &array);
    find_range(&map);
    map.square_root = options->scale && strcmp(options->scale, "sqrt") == 0;
    if (map.square_root && !map.probabilities)
        tool_die("--scale sqrt is for weights within 0 ... 1: %s has %.4g ... %.4g", options->attention,
                 (double)map.low, (double)map.high);
    map.title = options->title ? options->title : usual_title(&map, full[1]);
    map.zoom = (int)options->zoom.value;
    map.dark = options->theme && strcmp(options->theme, "dark") == 0;
    return map;
}

char *heatmap_head_text(const struct heatmap *map, int64_t h, char text[32]) {
    long long number = map->first_head + h;
    snprintf(text, 32, "head %lld", number);
    return text;
}

const float *heatmap_row(const struct heatmap *map, int64_t h, int64_t i) {
    return map->weights + (h * map->queries + i) * map->keys;
}

double heatmap_place(const struct heatmap *map, float weight) {
    if (!isfinite(weight)) return NAN;
    double place = ((double)weight - (double)map->low) / ((double)map->high - (double)map->low);
    return map->square_root ? sqrt(place) : place;
}

bool heatmap_unseen(const struct heatmap *map, float weight) {
    return map->probabilities && weight == 0;
}

/* Decimals that tell weights within low ... high apart, equally many for all, so that none is wider than the ends. */
static void print_number(const struct heatmap *map, double weight, char text[32]) {
    double most = fmax(fabs((double)map->low), fabs((double)map->high));
    int decimals = most >= 100 ? 0 : most >= 10 ? 1 : most >= 0.1 ? 2 : most >= 0.01 ? 3 : 4;
    if (most < 1e4 && most >= 0.001)
        snprintf(text, 32, "%.*f", decimals, weight);
    else if (weight == 0)
        strcpy(text, "0");
    else
        snprintf(text, 32, "%.1e", weight);
}

char *heatmap_weight_text(const struct heatmap *map, float weight, char text[32]) {
    if (isnan(weight))
        strcpy(text, "NaN");
    else if (isinf(weight))
        strcpy(text, weight > 0 ? "inf" : "-inf");
    else
        print_number(map, (double)weight, text);
    return text;
}

char *heatmap_wide_text(const struct heatmap *map, int i, char text[32]) {
    const float weights[HEATMAP_WIDE_TEXTS] = {map->low, map->high, map->infinities ? -INFINITY : map->low,
                                               map->nans ? NAN : map->low};
    return heatmap_weight_text(map, weights[i], text);
}
