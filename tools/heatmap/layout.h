/* SPDX-License-Identifier: MIT
 * Positions in a heatmap's picture. One unit is a pixel of a common screen. */
#ifndef RAPT_HEATMAP_LAYOUT_H
#define RAPT_HEATMAP_LAYOUT_H

#include "heatmap/heatmap.h"

enum {
    LAYOUT_MARGIN = 14,
    LAYOUT_GAP = 6, /* between labels and what they name */
    LAYOUT_TITLE_FONT = 15,
    LAYOUT_NAME_FONT = 12, /* of axes, of heads in a grid, of numbers at the colour bar */
    LAYOUT_BAR_WIDTH = 14,
    LAYOUT_MOST_PIXELS = 16384 /* per side: more are refused */
};

enum { LAYOUT_TITLE_LINES = 8 };

struct heatmap_layout {
    int width, height;
    char *title[LAYOUT_TITLE_LINES];    /* its lines; NULL after the last */
    double title_height;
    int cell_width, cell_height;
    int columns;                        /* of the grid of heads */
    double left, top;                   /* of the first head's cells */
    double step_x, step_y;              /* from head to head */
    double query_room, key_room;        /* for labels, beside and above the cells */
    double label_font, value_font;      /* value_font 0: cells without numbers */
    int64_t query_every, key_every;     /* labels at multiples of this are drawn */
    bool keys_upright;                  /* keys' labels run from left to right */
    double bar_left, bar_top, bar_height;
};

/* Number i beside the colour bar: its two ends, then the round ones between; false if there are no more. */
enum { HEATMAP_BAR_ENDS = 2 };
bool heatmap_bar_number(const struct heatmap *map, int i, double *number);

/* As drawn; returns text. */
char *heatmap_bar_text(double number, char text[32]);

/* The width of text at this font size, in units. */
typedef double heatmap_measure(void *context, const char *text, double font);

struct heatmap_layout heatmap_lay_out(const struct heatmap *map, heatmap_measure *measure, void *context);

#endif
