/* SPDX-License-Identifier: MIT
 * Pictures of `rapt heatmap`, pixel by pixel. */
#ifndef RAPT_TESTS_PICTURES_H
#define RAPT_TESTS_PICTURES_H

#include <cairo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heatmap/viridis.h"
#include "command/run.h"

struct picture {
    int width, height;
    cairo_surface_t *surface;
};

/* Reads a PNG after checking its signature and size; size: "... x ..." as the command said. */
static inline struct picture read_png(const char *path, const char *said) {
    unsigned char start[24];
    struct picture picture;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(start, 1, sizeof start, file), sizeof start);
    fclose(file);
    assert_memory_equal(start, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    picture.width = start[18] << 8 | start[19];
    picture.height = start[22] << 8 | start[23];
    char size[64];
    snprintf(size, sizeof size, "\nout      %s %d x %d pixels\n", path, picture.width, picture.height);
    assert_non_null(strstr(said, size));
    picture.surface = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(picture.surface), CAIRO_STATUS_SUCCESS);
    assert_int_equal(cairo_image_surface_get_width(picture.surface), picture.width);
    return picture;
}

static inline uint32_t pixel(const struct picture *picture, int x, int y) {
    const unsigned char *data = cairo_image_surface_get_data(picture->surface);
    uint32_t colour;
    memcpy(&colour, data + (ptrdiff_t)y * cairo_image_surface_get_stride(picture->surface) + 4 * (ptrdiff_t)x,
           sizeof colour);
    return colour & 0xffffff;
}

static inline bool is_coloured(uint32_t colour) {
    int red = (int)(colour >> 16), green = (int)(colour >> 8 & 255), blue = (int)(colour & 255);
    return abs(red - green) + abs(green - blue) + abs(blue - red) > 60;
}

/* The first row of a head's cells from x, y on; labels and paper are grey. */
static inline void find_cells(const struct picture *picture, int *x, int *y) {
    for (; *y < picture->height; ++*y, *x = 0) {
        for (; *x < picture->width; ++*x) {
            if (is_coloured(pixel(picture, *x, *y))) return;
        }
    }
    fail_msg("no cells");
}

#endif
