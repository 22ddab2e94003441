/* SPDX-License-Identifier: MIT
 * The cells of a heatmap's heads, their numbers and labels. */
#include <math.h>

#include "heatmap/picture.h"
#include "heatmap/viridis.h"

static uint32_t colour_of(const struct picture *picture, float weight) {
    double place = heatmap_place(picture->map, weight);
    return isnan(place) ? picture->theme->missing : viridis(place);
}

/* Unseen keys are hatched and not dark, which would read as a small weight. */
static uint32_t hatch(const struct picture *picture, int64_t x, int64_t y) {
    return (x + y) % PICTURE_HATCH == 0 ? picture->theme->faint : picture->theme->paper;
}

static void fill_cells(const struct picture *picture, int64_t h, uint32_t *pixels, int64_t stride) {
    const struct heatmap *map = picture->map;
    const int64_t wide = picture->layout.cell_width, high = picture->layout.cell_height;
    for (int64_t y = 0; y < map->queries * high; y++) {
        const float *weights = heatmap_row(map, h, y / high);
        uint32_t *row = pixels + y * stride;
        for (int64_t j = 0; j < map->keys; j++) {
            const bool unseen = heatmap_unseen(map, weights[j]);
            const uint32_t colour = colour_of(picture, weights[j]);
            for (int64_t x = j * wide; x < (j + 1) * wide; x++) row[x] = unseen ? hatch(picture, x, y) : colour;
        }
    }
}

/* An image, not rectangles: viewers show seams between those, and 128 x 128 of them are megabytes. */
static void draw_cells(const struct picture *picture, int64_t h, double left, double top) {
    const struct heatmap *map = picture->map;
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)map->keys * picture->layout.cell_width,
                                   (int)map->queries * picture->layout.cell_height);
    picture_check(picture, cairo_surface_status(image));
    cairo_surface_flush(image);
    fill_cells(picture, h, (uint32_t *)(void *)cairo_image_surface_get_data(image),
               cairo_image_surface_get_stride(image) / 4);
    cairo_surface_mark_dirty(image);
    cairo_set_source_surface(picture->cairo, image, left, top);
    cairo_pattern_set_filter(cairo_get_source(picture->cairo), CAIRO_FILTER_NEAREST);
    cairo_paint(picture->cairo);
    cairo_surface_destroy(image);
}

static void draw_values(const struct picture *picture, int64_t h, double left, double top) {
    const struct heatmap *map = picture->map;
    const struct heatmap_layout *layout = &picture->layout;
    char text[32];
    for (int64_t i = 0; i < map->queries; i++) {
        for (int64_t j = 0; j < map->keys; j++) {
            float weight = heatmap_row(map, h, i)[j];
            if (heatmap_unseen(map, weight)) continue;
            picture_colour(picture->cairo, viridis_wants_black(colour_of(picture, weight)) ? 0x000000 : 0xffffff);
            text_draw(&picture->pen, heatmap_weight_text(map, weight, text), layout->value_font,
                      left + ((double)j + 0.5) * layout->cell_width, top + ((double)i + 0.5) * layout->cell_height,
                      TEXT_MIDDLE, layout->cell_width - 1, false);
        }
    }
}

static void draw_query_labels(const struct picture *picture, double left, double top) {
    const struct heatmap_layout *layout = &picture->layout;
    picture_colour(picture->cairo, picture->theme->ink);
    for (int64_t i = 0; i < picture->map->queries; i += layout->query_every) {
        double y = top + ((double)i + 0.5) * layout->cell_height;
        if (layout->query_every > 1) picture_tick(picture, left - 4, y, left, y);
        text_draw(&picture->pen, picture->map->query_texts[i], layout->label_font, left - LAYOUT_GAP, y,
                  TEXT_RIGHT, layout->query_room, false);
    }
}

static void draw_key_labels(const struct picture *picture, double left, double top) {
    const struct heatmap_layout *layout = &picture->layout;
    picture_colour(picture->cairo, picture->theme->ink);
    for (int64_t j = 0; j < picture->map->keys; j += layout->key_every) {
        double x = left + ((double)j + 0.5) * layout->cell_width;
        if (layout->key_every > 1) picture_tick(picture, x, top - 4, x, top);
        if (layout->keys_upright)
            text_draw(&picture->pen, picture->map->key_texts[j], layout->label_font, x,
                      top - LAYOUT_GAP - layout->key_room / 2, TEXT_MIDDLE, 0, false);
        else
            text_draw(&picture->pen, picture->map->key_texts[j], layout->label_font, x, top - LAYOUT_GAP,
                      TEXT_LEFT, layout->key_room, true);
    }
}

void picture_heads(const struct picture *picture) {
    const struct heatmap_layout *layout = &picture->layout;
    for (int64_t h = 0; h < picture->map->heads; h++) {
        int64_t column = h % layout->columns, row = h / layout->columns;
        double left = layout->left + (double)column * layout->step_x, top = layout->top + (double)row * layout->step_y;
        draw_cells(picture, h, left, top);
        if (layout->value_font > 0) draw_values(picture, h, left, top);
        if (column == 0) draw_query_labels(picture, left, top);
        if (row == 0) draw_key_labels(picture, left, top);
        if (picture->map->heads == 1) continue;
        char name[32];
        double labels = row == 0 ? layout->key_room + LAYOUT_GAP : 0;
        picture_text(picture, heatmap_head_text(picture->map, h, name), picture->theme->ink,
                  left + 0.5 * (double)picture->map->keys * layout->cell_width,
                  top - labels - LAYOUT_NAME_FONT * 0.75, TEXT_MIDDLE);
    }
}
