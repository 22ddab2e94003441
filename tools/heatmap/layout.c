/* SPDX-License-Identifier: MIT */
#include "heatmap/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/tool.h"

enum { LEAST_LABEL_CELL = 9, LEAST_VALUE_CELL = 26, LABEL_ROOM = 120, GRID_LABEL_ROOM = 80, TITLE_ROOM = 360 };

/* Pages show pictures about this wide; a wider grid would be scaled down, with its labels. */
enum { MOST_GRID_WIDTH = 920, HEAD_GAP = 16 };

/* A cell's side if the longer side of a head has count cells: labels stay legible up to 128 (in a grid 40); beyond
 * these a head's side stays about the same. */
static int cell_side(int64_t count, bool grid) {
    int64_t side;
    if (grid)
        side = count <= 31 ? 280 / count : count <= 40 ? LEAST_LABEL_CELL : 400 / count;
    else
        side = count <= 64 ? 640 / count : count <= 128 ? 10 : 1280 / count;
    int64_t most = grid ? 36 : 64;
    return (int)(side < 1 ? 1 : side > most ? most : side);
}

static bool fills_rows(int64_t heads, int columns) { return columns > 0 && heads % columns == 0; }

/* As close to a square as full rows of at most this width allow. */
static int grid_columns(int64_t heads, double head_width, double most_width) {
    int least = 1, most = (int)(most_width / (head_width + HEAD_GAP));
    while ((int64_t)least * least < heads) least++;
    if (most < 1) most = 1;
    for (int columns = least; columns <= least + 2 && columns <= most; columns++) {
        if (fills_rows(heads, columns)) return columns;
    }
    if (least <= most) return least;
    for (int columns = most; 2 * columns > most; columns--) {
        if (fills_rows(heads, columns)) return columns;
    }
    return most;
}

static double widest(char **texts, int64_t count, int64_t every, double font, heatmap_measure *measure,
                     void *context) {
    double most = 0;
    for (int64_t i = 0; i < count; i += every) most = fmax(most, measure(context, texts[i], font));
    return ceil(most);
}

static void choose_cells(struct heatmap_layout *layout, const struct heatmap *map) {
    bool grid = map->heads > 1;
    int side = cell_side(map->queries > map->keys ? map->queries : map->keys, grid);
    int width = cell_side(map->keys, grid), height = cell_side(map->queries, grid);
    /* If one side has few tokens, its cells can be larger than those of the other. */
    layout->cell_width = width > 12 && side < 12 ? 12 : side;
    layout->cell_height = height > 12 && side < 12 ? 12 : side;
}

static bool fits_cells(const struct heatmap *map, double cell, double font, heatmap_measure *measure,
                         void *context) {
    char text[32];
    double room = 0;
    for (int i = 0; i < HEATMAP_WIDE_TEXTS; i++)
        room = fmax(room, measure(context, heatmap_wide_text(map, i, text), font));
    return room <= 0.82 * cell;
}

static void choose_fonts(struct heatmap_layout *layout, const struct heatmap *map, heatmap_measure *measure,
                         void *context) {
    int least = layout->cell_width < layout->cell_height ? layout->cell_width : layout->cell_height;
    layout->label_font = fmin(13, fmax(10, 0.9 * least));
    double room = layout->label_font;
    layout->query_every = (int64_t)ceil(room / layout->cell_height);
    layout->key_every = (int64_t)ceil(room / layout->cell_width);
    for (double font = 13; least >= LEAST_VALUE_CELL && font >= 8; font--) {
        if (!fits_cells(map, layout->cell_width, font, measure, context)) continue;
        layout->value_font = font;
        break;
    }
}

static void place_labels(struct heatmap_layout *layout, const struct heatmap *map, heatmap_measure *measure,
                         void *context) {
    double most = map->heads > 1 ? GRID_LABEL_ROOM : LABEL_ROOM, font = layout->label_font;
    layout->query_room =
        fmin(most, widest(map->query_texts, map->queries, layout->query_every, font, measure, context));
    double keys = widest(map->key_texts, map->keys, layout->key_every, font, measure, context);
    layout->keys_upright = keys <= layout->cell_width * (double)layout->key_every - 4;
    layout->key_room = layout->keys_upright ? ceil(font * 1.3) : fmin(most, keys);
}

/* As many of text's first words as fit into room, at least one; returns the rest. */
static const char *take_line(const char *text, double room, char **line, heatmap_measure *measure, void *context) {
    char *taken = tool_allocate((int64_t)strlen(text) + 1, 1, "the title");
    size_t end = 0;
    *line = taken;
    while (text[end]) {
        const size_t next = end + strspn(text + end, " ") + strcspn(text + end + strspn(text + end, " "), " ");
        memcpy(taken, text, next);
        taken[next] = '\0';
        if (end > 0 && measure(context, taken, LAYOUT_TITLE_FONT) > room) break;
        end = next;
    }
    taken[end] = '\0';
    return text + end + strspn(text + end, " ");
}

/* Breaks the title to the picture's width; small pictures are widened for it. */
static void break_title(struct heatmap_layout *layout, const char *title, heatmap_measure *measure, void *context) {
    const double whole = ceil(measure(context, title, LAYOUT_TITLE_FONT)) + 1;
    const int wanted = (int)fmin(whole, TITLE_ROOM) + 2 * LAYOUT_MARGIN;
    if (layout->width < wanted) layout->width = wanted;
    int lines = 0;
    for (; *title && lines < LAYOUT_TITLE_LINES - 2; lines++)
        title = take_line(title, layout->width - 2 * LAYOUT_MARGIN, &layout->title[lines], measure, context);
    /* The rest is cut at the line's end. */
    if (*title) take_line(title, 1e9, &layout->title[lines++], measure, context);
    layout->title_height = LAYOUT_TITLE_FONT * (1.8 + 1.3 * (lines > 1 ? lines - 1 : 0));
}

/* The largest of 1, 2, 5 times a power of ten that gives at least four steps, or nearly. */
static double nice_step(double range) {
    double power = pow(10, floor(log10(range / 4))), most = range / 4 / power * 1.05;
    return power * (most >= 5 ? 5 : most >= 2 ? 2 : 1);
}

bool heatmap_bar_number(const struct heatmap *map, int i, double *number) {
    const double low = (double)map->low, high = (double)map->high, step = nice_step(high - low);
    const double steps = ceil(low / step - 1e-6) + i - HEATMAP_BAR_ENDS;
    *number = i == 0 ? high : i == 1 ? low : steps == 0 ? 0 : steps * step;
    return i < HEATMAP_BAR_ENDS || *number <= high + 1e-6 * step;
}

char *heatmap_bar_text(double number, char text[32]) {
    snprintf(text, 32, "%.3g", number);
    return text;
}

/* Room for numbers at the bar, and the grey keys below it. */
static double bar_room(const struct heatmap *map, heatmap_measure *measure, void *context) {
    double room = fmax(measure(context, "-0.0000", LAYOUT_NAME_FONT), measure(context, "unseen", LAYOUT_NAME_FONT));
    double number;
    char text[32];
    for (int i = 0; heatmap_bar_number(map, i, &number); i++)
        room = fmax(room, measure(context, heatmap_bar_text(number, text), LAYOUT_NAME_FONT));
    return room;
}

static struct heatmap_layout lay_out(const struct heatmap *map, double grid_width, heatmap_measure *measure,
                                     void *context) {
    struct heatmap_layout layout = {0};
    const double name_line = LAYOUT_NAME_FONT * 1.5;
    choose_cells(&layout, map);
    layout.columns = grid_columns(map->heads, (double)map->keys * layout.cell_width, grid_width);
    int64_t rows = (map->heads + layout.columns - 1) / layout.columns;
    choose_fonts(&layout, map, measure, context);
    place_labels(&layout, map, measure, context);
    double wide = (double)map->keys * layout.cell_width, high = (double)map->queries * layout.cell_height;
    double head_line = map->heads > 1 ? name_line : 0;
    layout.left = LAYOUT_MARGIN + name_line + layout.query_room + LAYOUT_GAP;
    layout.step_x = wide + HEAD_GAP;
    layout.step_y = high + head_line + 12;
    double right = layout.left + layout.step_x * (layout.columns - 1) + wide;
    const double numbers = bar_room(map, measure, context);
    layout.bar_left = right + 22;
    layout.width = (int)fmin(1e6, layout.bar_left + LAYOUT_BAR_WIDTH + LAYOUT_GAP + numbers + LAYOUT_MARGIN);
    break_title(&layout, map->title, measure, context);
    layout.top = LAYOUT_MARGIN + layout.title_height + name_line + head_line + layout.key_room + LAYOUT_GAP;
    double bottom = layout.top + layout.step_y * (double)(rows - 1) + high;
    layout.bar_top = layout.top;
    layout.bar_height = fmin(320, fmax(110, bottom - layout.top));
    double below = ((map->nans || map->infinities) + (map->unseen != 0) + 0.5) * name_line;
    layout.height = (int)fmin(1e6, fmax(bottom, layout.bar_top + layout.bar_height + below) + LAYOUT_MARGIN);
    return layout;
}

/* A page is too narrow for very many heads. */
struct heatmap_layout heatmap_lay_out(const struct heatmap *map, heatmap_measure *measure, void *context) {
    const int most = LAYOUT_MOST_PIXELS / (map->zoom ? map->zoom : 1);
    const struct heatmap_layout layout = lay_out(map, MOST_GRID_WIDTH, measure, context);
    return layout.height > most ? lay_out(map, most, measure, context) : layout;
}
