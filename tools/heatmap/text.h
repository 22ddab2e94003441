/* SPDX-License-Identifier: MIT
 * Text in a picture, by Pango: any script, any bytes. */
#ifndef RAPT_HEATMAP_TEXT_H
#define RAPT_HEATMAP_TEXT_H

#include <cairo.h>
#include <pango/pango.h>
#include <stdbool.h>

enum text_anchor { TEXT_LEFT, TEXT_MIDDLE, TEXT_RIGHT };

struct text_pen {
    cairo_t *cairo;
    PangoLayout *layout; /* owned until text_end */
    int *unknown;        /* characters drawn so far that no font has; NULL: not counted */
};

struct text_pen text_begin(cairo_t *cairo, int *unknown);
void text_end(struct text_pen *pen);

/* In units. */
double text_width(const struct text_pen *pen, const char *text, double font);

/* The anchor of the text's middle line is at x, y; text wider than most (0: no limit) ends in an ellipsis. turned: it
 * runs upwards. */
void text_draw(const struct text_pen *pen, const char *text, double font, double x, double y,
               enum text_anchor anchor, double most, bool turned);

#endif
