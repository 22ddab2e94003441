/* SPDX-License-Identifier: MIT
 * Shared by the parts of a heatmap's picture while drawing. */
#ifndef RAPT_HEATMAP_PICTURE_H
#define RAPT_HEATMAP_PICTURE_H

#include "heatmap/heatmap.h"
#include "heatmap/layout.h"
#include "heatmap/text.h"

enum { PICTURE_HATCH = 5 }; /* from line to line, across */

/* Colours are 0xRRGGBB. missing: for weights that are not finite. */
struct theme {
    uint32_t paper, ink, faint, missing;
};

struct picture {
    const struct heatmap *map;
    const struct theme *theme;
    struct heatmap_layout layout;
    cairo_t *cairo;
    struct text_pen pen;
};

void picture_colour(cairo_t *cairo, uint32_t colour);

/* Dies if Cairo failed. */
void picture_check(const struct picture *picture, cairo_status_t status);

/* Text in the size of axis names and numbers. */
void picture_text(const struct picture *picture, const char *text, uint32_t colour, double x, double y,
                  enum text_anchor anchor);

/* A short line; its label may follow. */
void picture_tick(const struct picture *picture, double x, double y, double to_x, double to_y);

/* The parts: cells with their labels; title and axes; the colour bar. */
void picture_heads(const struct picture *picture);
void picture_names(const struct picture *picture);
void picture_bar(const struct picture *picture);

#endif
