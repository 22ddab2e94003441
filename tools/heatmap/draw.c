/* SPDX-License-Identifier: MIT
 * A heatmap as a picture: one drawing for PNG and SVG, by Cairo. */
#include <cairo-svg.h>
#include <string.h>

#include "common/tool.h"
#include "heatmap/picture.h"

static const struct theme light = {0xffffff, 0x202020, 0x909090, 0xc8c8c8},
                          dark = {0x15171c, 0xe4e4e4, 0x7c8087, 0x5a5d63};

void picture_colour(cairo_t *cairo, uint32_t colour) {
    cairo_set_source_rgb(cairo, (colour >> 16) / 255.0, (colour >> 8 & 255) / 255.0, (colour & 255) / 255.0);
}

void picture_check(const struct picture *picture, cairo_status_t status) {
    if (status != CAIRO_STATUS_SUCCESS)
        tool_die("%s: cannot be drawn: %s", picture->map->path, cairo_status_to_string(status));
}

void picture_text(const struct picture *picture, const char *text, uint32_t colour, double x, double y,
                  enum text_anchor anchor) {
    picture_colour(picture->cairo, colour);
    text_draw(&picture->pen, text, LAYOUT_NAME_FONT, x, y, anchor, 0, false);
}

void picture_tick(const struct picture *picture, double x, double y, double to_x, double to_y) {
    picture_colour(picture->cairo, picture->theme->faint);
    cairo_set_line_width(picture->cairo, 1);
    cairo_move_to(picture->cairo, x, y);
    cairo_line_to(picture->cairo, to_x, to_y);
    cairo_stroke(picture->cairo);
    picture_colour(picture->cairo, picture->theme->ink);
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
    struct text_pen pen = text_begin(cairo, NULL);
    struct heatmap_layout layout = heatmap_lay_out(map, measure, &pen);
    text_end(&pen);
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
    return layout;
}

static void draw(struct picture *picture, cairo_surface_t *surface, double scale) {
    picture_check(picture, cairo_surface_status(surface));
    picture->cairo = cairo_create(surface);
    cairo_scale(picture->cairo, scale, scale);
    int unknown = 0;
    picture->pen = text_begin(picture->cairo, &unknown);
    picture_colour(picture->cairo, picture->theme->paper);
    cairo_paint(picture->cairo);
    picture_heads(picture);
    picture_names(picture);
    picture_bar(picture);
    text_end(&picture->pen);
    if (unknown)
        tool_warn("the picture of %s: %d character%s of its texts %s in no font here and become boxes",
                  picture->map->path, unknown, unknown == 1 ? "" : "s", unknown == 1 ? "is" : "are");
    picture_check(picture, cairo_status(picture->cairo));
    cairo_destroy(picture->cairo);
}

struct heatmap_size heatmap_draw(const struct heatmap *map, bool svg, void **bytes, size_t *count) {
    struct picture picture = {.map = map, .theme = map->dark ? &dark : &light, .layout = lay_out(map)};
    int width = picture.layout.width, height = picture.layout.height, longer = width > height ? width : height;
    int scale = svg ? 1 : map->zoom ? map->zoom : 2 * longer <= LAYOUT_MOST_PIXELS ? 2 : 1;
    if (longer * scale > LAYOUT_MOST_PIXELS) {
        tool_die("%s: a picture of it has %d x %d pixels, more than %d per side", map->path, width * scale,
                 height * scale, LAYOUT_MOST_PIXELS);
    }
    struct file file = {0};
    cairo_surface_t *surface =
        svg ? cairo_svg_surface_create_for_stream(append, &file, width, height)
            : cairo_image_surface_create(CAIRO_FORMAT_RGB24, width * scale, height * scale);
    if (svg) cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
    draw(&picture, surface, scale);
    if (!svg) picture_check(&picture, cairo_surface_write_to_png_stream(surface, append, &file));
    cairo_surface_finish(surface);
    picture_check(&picture, cairo_surface_status(surface));
    cairo_surface_destroy(surface);
    *bytes = file.bytes;
    *count = file.count;
    return (struct heatmap_size){width * scale, height * scale};
}
