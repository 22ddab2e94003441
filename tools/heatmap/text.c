/* SPDX-License-Identifier: MIT */
#include "heatmap/text.h"

#include <math.h>
#include <pango/pangocairo.h>
#include <stdio.h>
#include <string.h>

/* A line of the largest picture; Pango's time grows with the text. */
enum { MOST_BYTES = 2048 };

struct text_pen text_begin(cairo_t *cairo, int *unknown) {
    struct text_pen pen = {cairo, pango_cairo_create_layout(cairo), unknown};
    /* Hinted widths would depend on the resolution, and differ from those measured. */
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    pango_cairo_context_set_font_options(pango_layout_get_context(pen.layout), options);
    pango_context_set_round_glyph_positions(pango_layout_get_context(pen.layout), FALSE);
    cairo_font_options_destroy(options);
    pango_layout_set_single_paragraph_mode(pen.layout, TRUE);
    pango_layout_set_ellipsize(pen.layout, PANGO_ELLIPSIZE_END);
    return pen;
}

void text_end(struct text_pen *pen) {
    g_object_unref(pen->layout);
}

/* Valid UTF-8 with control characters escaped: \t, \x1b. Truncated text ends in an ellipsis. */
static void make_visible(const char *text, char visible[MOST_BYTES * 4 + 1]) {
    char *at = visible;
    const size_t bytes = strnlen(text, MOST_BYTES);
    gchar *valid = g_utf8_make_valid(text, (gssize)bytes);
    for (const char *c = valid; *c && at < visible + (MOST_BYTES - 2) * 4; c = g_utf8_next_char(c)) {
        gunichar character = g_utf8_get_char(c);
        if (character == '\t')
            at += sprintf(at, "\\t");
        else if (g_unichar_iscntrl(character))
            at += sprintf(at, "\\x%02x", (unsigned)character);
        else
            at += g_unichar_to_utf8(character, at);
    }
    strcpy(at, text[bytes] ? "…" : "");
    g_free(valid);
}

static void set_text(const struct text_pen *pen, const char *text, double font, double most) {
    char visible[MOST_BYTES * 4 + 1];
    make_visible(text, visible);
    PangoFontDescription *description = pango_font_description_from_string("sans");
    pango_font_description_set_absolute_size(description, font * PANGO_SCALE);
    pango_layout_set_font_description(pen->layout, description);
    pango_font_description_free(description);
    pango_layout_set_width(pen->layout, -1);
    pango_layout_set_text(pen->layout, visible, -1);
    if (most <= 0) return;
    int width;
    pango_layout_get_size(pen->layout, &width, NULL);
    if (width > (int)ceil(most * PANGO_SCALE)) pango_layout_set_width(pen->layout, (int)(most * PANGO_SCALE));
}

static double set_width(const struct text_pen *pen) {
    PangoRectangle logical;
    pango_layout_get_extents(pen->layout, NULL, &logical);
    return (double)logical.width / PANGO_SCALE;
}

double text_width(const struct text_pen *pen, const char *text, double font) {
    set_text(pen, text, font, 0);
    return set_width(pen);
}

void text_draw(const struct text_pen *pen, const char *text, double font, double x, double y,
               enum text_anchor anchor, double most, bool turned) {
    set_text(pen, text, font, most);
    PangoRectangle logical;
    pango_layout_get_extents(pen->layout, NULL, &logical);
    double width = set_width(pen), height = (double)logical.height / PANGO_SCALE;
    double before = anchor == TEXT_LEFT ? 0 : anchor == TEXT_MIDDLE ? width / 2 : width;
    if (pen->unknown) *pen->unknown += pango_layout_get_unknown_glyphs_count(pen->layout);
    cairo_save(pen->cairo);
    cairo_translate(pen->cairo, x, y);
    if (turned) cairo_rotate(pen->cairo, -G_PI / 2);
    cairo_move_to(pen->cairo, -before - (double)logical.x / PANGO_SCALE, -height / 2);
    pango_cairo_show_layout(pen->cairo, pen->layout);
    cairo_restore(pen->cairo);
}
