/* SPDX-License-Identifier: MIT
 * A heatmap as a picture: one drawing for PNG and SVG, by Cairo. */
#include <cairo-svg.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "heatmap.h"
#include "heatmap_layout.h"
#include "heatmap_text.h"
#include "tool.h"
#include "viridis.h"

enum { MOST_PIXELS = 16384 };

struct theme {
    uint32_t paper, ink, faint, missing;
};
static const struct theme light = {0xffffff, 0x202020, 0x909090, 0xc8c8c8},
                          dark = {0x15171c, 0xe4e4e4, 0x7c8087, 0x5a5d63};

struct picture {
    const struct heatmap *map;
    const struct theme *theme;
    struct heatmap_layout layout;
    cairo_t *cairo;
    struct text_pen pen;
};

static void set_colour(cairo_t *cairo, uint32_t colour) {
    cairo_set_source_rgb(cairo, (colour >> 16) / 255.0, (colour >> 8 & 255) / 255.0, (colour & 255) / 255.0);
}

static void check(const struct picture *picture, cairo_status_t status) {
    if (status != CAIRO_STATUS_SUCCESS)
        tool_die("%s: cannot be drawn: %s", picture->map->path, cairo_status_to_string(status));
}

static uint32_t colour_of(const struct picture *picture, float weight) {
    double place = heatmap_place(picture->map, weight);
    return isnan(place) ? picture->theme->missing : viridis(place);
}

static void draw_text(const struct picture *picture, const char *text, uint32_t colour, double x, double y,
                      enum text_anchor anchor) {
    set_colour(picture->cairo, colour);
    text_draw(&picture->pen, text, LAYOUT_NAME_FONT, x, y, anchor, 0, false);
}

static void fill_cells(const struct picture *picture, int64_t h, uint32_t *pixels, int64_t stride) {
    const struct heatmap *map = picture->map;
    const int64_t wide = picture->layout.cell_width, high = picture->layout.cell_height;
    for (int64_t y = 0; y < map->queries * high; y++) {
        const float *weights = heatmap_row(map, h, y / high);
        uint32_t *row = pixels + y * stride;
        if (y % high != 0) {
            memcpy(row, row - stride, (size_t)(map->keys * wide) * sizeof *row);
            continue;
        }
        for (int64_t x = 0; x < map->keys * wide; x++) row[x] = colour_of(picture, weights[x / wide]);
    }
}

/* An image and no rectangles: between rectangles viewers show seams, and 128 x 128 of them are megabytes. */
static void draw_cells(const struct picture *picture, int64_t h, double left, double top) {
    const struct heatmap *map = picture->map;
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)map->keys * picture->layout.cell_width,
                                   (int)map->queries * picture->layout.cell_height);
    check(picture, cairo_surface_status(image));
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
            set_colour(picture->cairo, viridis_wants_black(colour_of(picture, weight)) ? 0x000000 : 0xffffff);
            text_draw(&picture->pen, heatmap_weight_text(map, weight, text), layout->value_font,
                      left + ((double)j + 0.5) * layout->cell_width, top + ((double)i + 0.5) * layout->cell_height,
                      TEXT_MIDDLE, layout->cell_width - 1, false);
        }
    }
}

/* A label's tick: only where not every token has one. */
static void draw_tick(const struct picture *picture, double x, double y, double to_x, double to_y) {
    set_colour(picture->cairo, picture->theme->faint);
    cairo_set_line_width(picture->cairo, 1);
    cairo_move_to(picture->cairo, x, y);
    cairo_line_to(picture->cairo, to_x, to_y);
    cairo_stroke(picture->cairo);
    set_colour(picture->cairo, picture->theme->ink);
}

static void draw_query_labels(const struct picture *picture, double left, double top) {
    const struct heatmap_layout *layout = &picture->layout;
    set_colour(picture->cairo, picture->theme->ink);
    for (int64_t i = 0; i < picture->map->queries; i += layout->query_every) {
        double y = top + ((double)i + 0.5) * layout->cell_height;
        if (layout->query_every > 1) draw_tick(picture, left - 4, y, left, y);
        text_draw(&picture->pen, picture->map->query_texts[i], layout->label_font, left - LAYOUT_GAP, y,
                  TEXT_RIGHT, layout->query_room, false);
    }
}

static void draw_key_labels(const struct picture *picture, double left, double top) {
    const struct heatmap_layout *layout = &picture->layout;
    set_colour(picture->cairo, picture->theme->ink);
    for (int64_t j = 0; j < picture->map->keys; j += layout->key_every) {
        double x = left + ((double)j + 0.5) * layout->cell_width;
        if (layout->key_every > 1) draw_tick(picture, x, top - 4, x, top);
        if (layout->keys_upright)
            text_draw(&picture->pen, picture->map->key_texts[j], layout->label_font, x,
                      top - LAYOUT_GAP - layout->key_room / 2, TEXT_MIDDLE, 0, false);
        else
            text_draw(&picture->pen, picture->map->key_texts[j], layout->label_font, x, top - LAYOUT_GAP,
                      TEXT_LEFT, layout->key_room, true);
    }
}

static void draw_heads(const struct picture *picture) {
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
        draw_text(picture, heatmap_head_text(picture->map, h, name), picture->theme->ink,
                  left + 0.5 * (double)picture->map->keys * layout->cell_width,
                  top - labels - LAYOUT_NAME_FONT * 0.75, TEXT_MIDDLE);
    }
}

static void draw_names(const struct picture *picture) {
    const struct heatmap *map = picture->map;
    const struct heatmap_layout *layout = &picture->layout;
    int64_t rows = (map->heads + layout->columns - 1) / layout->columns;
    int64_t columns = map->heads < layout->columns ? map->heads : layout->columns;
    double right = layout->left + layout->step_x * (double)(columns - 1) + (double)map->keys * layout->cell_width;
    double bottom = layout->top + layout->step_y * (double)(rows - 1) + (double)map->queries * layout->cell_height;
    set_colour(picture->cairo, picture->theme->ink);
    text_draw(&picture->pen, map->title, LAYOUT_TITLE_FONT, LAYOUT_MARGIN, LAYOUT_MARGIN + LAYOUT_TITLE_FONT * 0.6,
              TEXT_LEFT, layout->width - 2 * LAYOUT_MARGIN, false);
    draw_text(picture, "keys", picture->theme->faint, (layout->left + right) / 2,
              LAYOUT_MARGIN + LAYOUT_TITLE_FONT * 1.8 + LAYOUT_NAME_FONT * 0.5, TEXT_MIDDLE);
    set_colour(picture->cairo, picture->theme->faint);
    text_draw(&picture->pen, "queries", LAYOUT_NAME_FONT, LAYOUT_MARGIN + LAYOUT_NAME_FONT * 0.5,
              (layout->top + bottom) / 2, TEXT_MIDDLE, 0, true);
}

/* The largest of 1, 2, 5 times a power of ten that gives at least four steps, or nearly. */
static double nice_step(double range) {
    double power = pow(10, floor(log10(range / 4))), most = range / 4 / power * 1.05;
    return power * (most >= 5 ? 5 : most >= 2 ? 2 : 1);
}

static void draw_bar_numbers(const struct picture *picture) {
    const struct heatmap_layout *layout = &picture->layout;
    double low = (double)picture->map->low, high = (double)picture->map->high, step = nice_step(high - low);
    double right = layout->bar_left + LAYOUT_BAR_WIDTH;
    for (double n = ceil(low / step - 1e-6); n * step <= high + 1e-6 * step; n++) {
        char text[32];
        double y = layout->bar_top + layout->bar_height * (high - n * step) / (high - low);
        snprintf(text, sizeof text, "%.4g", n == 0 ? 0 : n * step);
        draw_tick(picture, right, y, right + 4, y);
        draw_text(picture, text, picture->theme->ink, right + LAYOUT_GAP, y, TEXT_LEFT);
    }
}

static void draw_bar(const struct picture *picture) {
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
    draw_text(picture, picture->map->probabilities ? "weight" : "score", picture->theme->faint, layout->bar_left,
              layout->bar_top - LAYOUT_NAME_FONT * 1.4, TEXT_LEFT);
    draw_bar_numbers(picture);
    if (!picture->map->nans && !picture->map->infinities) return;
    double top = layout->bar_top + layout->bar_height + LAYOUT_NAME_FONT;
    set_colour(picture->cairo, picture->theme->missing);
    cairo_rectangle(picture->cairo, layout->bar_left, top, LAYOUT_BAR_WIDTH, LAYOUT_BAR_WIDTH);
    cairo_fill(picture->cairo);
    draw_text(picture, !picture->map->nans ? "±∞" : picture->map->infinities ? "NaN, ±∞" : "NaN",
              picture->theme->ink, layout->bar_left + LAYOUT_BAR_WIDTH + LAYOUT_GAP, top + LAYOUT_BAR_WIDTH * 0.5,
              TEXT_LEFT);
}

/* A file that grows in memory. */
struct file {
    unsigned char *bytes;
    size_t count, room;
};

static cairo_status_t append(void *closure, const unsigned char *bytes, unsigned count) {
    struct file *file = closure;
    if (file->count + count > file->room) {
        size_t room = 2 * (file->count + count) + 65536;
        unsigned char *larger = tool_allocate((int64_t)room, 1, "the picture");
        if (file->count) memcpy(larger, file->bytes, file->count);
        file->bytes = larger;
        file->room = room;
    }
    memcpy(file->bytes + file->count, bytes, count);
    file->count += count;
    return CAIRO_STATUS_SUCCESS;
}

static double measure(void *context, const char *text, double font) {
    return text_width(context, text, font);
}

static struct heatmap_layout lay_out(const struct heatmap *map) {
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);
    cairo_t *cairo = cairo_create(surface);
    struct text_pen pen = text_begin(cairo);
    struct heatmap_layout layout = heatmap_lay_out(map, measure, &pen);
    text_end(&pen);
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
    return layout;
}

static void draw(struct picture *picture, cairo_surface_t *surface, double scale) {
    check(picture, cairo_surface_status(surface));
    picture->cairo = cairo_create(surface);
    cairo_scale(picture->cairo, scale, scale);
    picture->pen = text_begin(picture->cairo);
    set_colour(picture->cairo, picture->theme->paper);
    cairo_paint(picture->cairo);
    draw_heads(picture);
    draw_names(picture);
    draw_bar(picture);
    text_end(&picture->pen);
    check(picture, cairo_status(picture->cairo));
    cairo_destroy(picture->cairo);
}

struct heatmap_size heatmap_draw(const struct heatmap *map, bool svg, void **bytes, size_t *count) {
    struct picture picture = {.map = map, .theme = map->dark ? &dark : &light, .layout = lay_out(map)};
    int width = picture.layout.width, height = picture.layout.height, longer = width > height ? width : height;
    int scale = svg ? 1 : map->zoom ? map->zoom : 2 * longer <= MOST_PIXELS ? 2 : 1;
    if (longer * scale > MOST_PIXELS) {
        tool_die("%s: a picture of it has %d x %d pixels, more than %d a side", map->path, width * scale,
                 height * scale, MOST_PIXELS);
    }
    struct file file = {0};
    cairo_surface_t *surface =
        svg ? cairo_svg_surface_create_for_stream(append, &file, width, height)
            : cairo_image_surface_create(CAIRO_FORMAT_RGB24, width * scale, height * scale);
    if (svg) cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
    draw(&picture, surface, scale);
    if (!svg) check(&picture, cairo_surface_write_to_png_stream(surface, append, &file));
    cairo_surface_finish(surface);
    check(&picture, cairo_surface_status(surface));
    cairo_surface_destroy(surface);
    *bytes = file.bytes;
    *count = file.count;
    return (struct heatmap_size){width * scale, height * scale};
}
