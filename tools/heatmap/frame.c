/* SPDX-License-Identifier: MIT
 * Around a heatmap's cells: title, axes, colour bar. */
#include <math.h>

#include "heatmap/picture.h"
#include "heatmap/viridis.h"

void picture_names(const struct picture *picture) {
    const struct heatmap *map = picture->map;
    const struct heatmap_layout *layout = &picture->layout;
    int64_t rows = (map->heads + layout->columns - 1) / layout->columns;
    int64_t columns = map->heads < layout->columns ? map->heads : layout->columns;
    double right = layout->left + layout->step_x * (double)(columns - 1) + (double)map->keys * layout->cell_width;
    double bottom = layout->top + layout->step_y * (double)(rows - 1) + (double)map->queries * layout->cell_height;
    picture_colour(picture->cairo, picture->theme->ink);
    for (int i = 0; layout->title[i]; i++)
        text_draw(&picture->pen, layout->title[i], LAYOUT_TITLE_FONT, LAYOUT_MARGIN,
                  LAYOUT_MARGIN + LAYOUT_TITLE_FONT * (0.6 + 1.3 * i), TEXT_LEFT, layout->width - 2 * LAYOUT_MARGIN,
                  false);
    picture_text(picture, "keys", picture->theme->faint, (layout->left + right) / 2,
              LAYOUT_MARGIN + layout->title_height + LAYOUT_NAME_FONT * 0.5, TEXT_MIDDLE);
    picture_colour(picture->cairo, picture->theme->faint);
    text_draw(&picture->pen, "queries", LAYOUT_NAME_FONT, LAYOUT_MARGIN + LAYOUT_NAME_FONT * 0.5,
              (layout->top + bottom) / 2, TEXT_MIDDLE, 0, true);
}

static double bar_height_of(const struct picture *picture, double number) {
    double place = fmin(1, fmax(0, heatmap_place(picture->map, (float)number)));
    return picture->layout.bar_top + picture->layout.bar_height * (1 - place);
}

static void draw_bar_number(const struct picture *picture, double number, double y) {
    const double right = picture->layout.bar_left + LAYOUT_BAR_WIDTH;
    char text[32];
    picture_tick(picture, right, y, right + 4, y);
    picture_text(picture, heatmap_bar_text(number, text), picture->theme->ink, right + LAYOUT_GAP, y, TEXT_LEFT);
}

/* Both ends, and round numbers that fit between. */
static void draw_bar_numbers(const struct picture *picture) {
    const struct heatmap_layout *layout = &picture->layout;
    const double bottom = layout->bar_top + layout->bar_height, room = LAYOUT_NAME_FONT * 1.2;
    double number;
    for (int i = 0; heatmap_bar_number(picture->map, i, &number); i++) {
        const double y = bar_height_of(picture, number);
        if (i < HEATMAP_BAR_ENDS || (y - layout->bar_top > room && bottom - y > room))
            draw_bar_number(picture, number, y);
    }
    if (picture->map->low >= 0 || picture->map->high <= 0) return;
    /* A line through the bar at zero separates attraction from repulsion. */
    const double zero = bar_height_of(picture, 0);
    picture_colour(picture->cairo, picture->theme->paper);
    cairo_rectangle(picture->cairo, layout->bar_left, zero - 1.5, LAYOUT_BAR_WIDTH, 3);
    cairo_fill(picture->cairo);
    picture_colour(picture->cairo, picture->theme->ink);
    cairo_rectangle(picture->cairo, layout->bar_left - 3, zero - 0.5, LAYOUT_BAR_WIDTH + 3, 1);
    cairo_fill(picture->cairo);
}

/* Explains a colour below the bar. */
static void draw_key(const struct picture *picture, double top, uint32_t colour, const char *text) {
    double left = picture->layout.bar_left;
    picture_colour(picture->cairo, colour);
    cairo_rectangle(picture->cairo, left, top, LAYOUT_BAR_WIDTH, LAYOUT_BAR_WIDTH);
    cairo_fill(picture->cairo);
    picture_text(picture, text, picture->theme->ink, left + LAYOUT_BAR_WIDTH + LAYOUT_GAP,
                 top + LAYOUT_BAR_WIDTH * 0.5, TEXT_LEFT);
}

/* As in cells, where x + y is a multiple. */
static void draw_hatch(const struct picture *picture, double top) {
    double left = picture->layout.bar_left;
    cairo_save(picture->cairo);
    cairo_rectangle(picture->cairo, left, top, LAYOUT_BAR_WIDTH, LAYOUT_BAR_WIDTH);
    cairo_clip(picture->cairo);
    for (int along = 0; along < 2 * LAYOUT_BAR_WIDTH; along += PICTURE_HATCH)
        picture_tick(picture, left + along, top, left + along - LAYOUT_BAR_WIDTH, top + LAYOUT_BAR_WIDTH);
    cairo_restore(picture->cairo);
}

void picture_bar(const struct picture *picture) {
    const struct heatmap_layout *layout = &picture->layout;
    cairo_pattern_t *colours =
        cairo_pattern_create_linear(0, layout->bar_top + layout->bar_height, 0, layout->bar_top);
    for (int i = 0; i < 256; i++) {
        uint32_t colour = viridis(i / 255.0);
        cairo_pattern_add_color_stop_rgb(colours, i / 255.0, (colour >> 16) / 255.0, (colour >> 8 & 255) / 255.0,
                                         (colour & 255) / 255.0);
    }
    cairo_set_source(picture->cairo, colours);
    cairo_rectangle(picture->cairo, layout->bar_left, layout->bar_top, LAYOUT_BAR_WIDTH, layout->bar_height);
    cairo_fill(picture->cairo);
    cairo_pattern_destroy(colours);
    picture_text(picture, picture->map->probabilities ? "weight" : "score", picture->theme->faint, layout->bar_left,
              layout->bar_top - LAYOUT_NAME_FONT * 1.4, TEXT_LEFT);
    draw_bar_numbers(picture);
    double top = layout->bar_top + layout->bar_height + LAYOUT_NAME_FONT;
    if (picture->map->unseen) {
        draw_key(picture, top, picture->theme->paper, "unseen");
        draw_hatch(picture, top);
        top += LAYOUT_NAME_FONT * 1.5;
    }
    if (picture->map->nans || picture->map->infinities)
        draw_key(picture, top, picture->theme->missing,
                 !picture->map->nans ? "±∞" : picture->map->infinities ? "NaN, ±∞" : "NaN");
}
