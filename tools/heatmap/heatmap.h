/* SPDX-License-Identifier: MIT
 * Heatmaps: the weights of some heads, all on one scale. */
#ifndef RAPT_HEATMAP_H
#define RAPT_HEATMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"

struct heatmap_options {
    const char *attention, *tokens, *key_tokens, *head, *out;
    const char *title, *theme, *colours, *scale;
    struct option_integer batch, zoom;
};

extern const struct option_row heatmap_option_rows[];

/* argv[0] is the verb. Dies if an option is unknown, malformed or missing. */
struct heatmap_options heatmap_parse(int argc, char **argv);

struct heatmap {
    const char *path;
    int64_t first_head, heads, queries, keys;
    const float *weights;            /* [heads, queries, keys] */
    char **query_texts, **key_texts; /* as read: any bytes; positions if there is no file */
    float low, high;                 /* the colours' range: finite, low < high */
    bool probabilities;              /* every finite weight is within 0 ... 1 */
    bool square_root;                /* colours scale with a weight's root, so that small ones differ */
    int64_t nans, infinities;
    int64_t unseen;                  /* weights of exactly 0 among probabilities */
    const char *title;
    bool dark;
    int zoom; /* pixels of a PNG per unit; 0: 2, or 1 if that would be too large */
};

/* Reads the files; dies if they do not fit or head or sequence do not exist. */
struct heatmap heatmap_load(const struct heatmap_options *options);

/* "head 5" into text, for the h-th one drawn; returns text. */
char *heatmap_head_text(const struct heatmap *map, int64_t h, char text[32]);

/* Head h (from 0, of those drawn), query i. */
const float *heatmap_row(const struct heatmap *map, int64_t h, int64_t i);

/* The place of weight's colour between low and high, 0 ... 1; NaN if not finite. */
double heatmap_place(const struct heatmap *map, float weight);

/* Whether no query attends there: softmax gives exactly 0 to masked keys, or to scores far below the largest. */
bool heatmap_unseen(const struct heatmap *map, float weight);

/* A weight as short as a cell requires; returns text. */
char *heatmap_weight_text(const struct heatmap *map, float weight, char text[32]);

/* Number i of some texts, one of which is as wide as any weight's. */
enum { HEATMAP_WIDE_TEXTS = 4 };
char *heatmap_wide_text(const struct heatmap *map, int i, char text[32]);

/* Prints to standard output. colours: an option's choice or NULL. */
void heatmap_print(const struct heatmap *map, const char *colours);

/* A PNG, or an SVG if svg, into *bytes, *count; dies if this build cannot draw. size: pixels (PNG) or units (SVG). */
struct heatmap_size {
    int width, height;
};
struct heatmap_size heatmap_draw(const struct heatmap *map, bool svg, void **bytes, size_t *count);

#endif
