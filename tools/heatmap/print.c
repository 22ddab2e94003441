/* SPDX-License-Identifier: MIT
 * Heatmaps in a terminal: a line per query, one or more columns per key. */
#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/text.h"
#include "heatmap/heatmap.h"
#include "heatmap/viridis.h"
#include "layer/tokens.h"

enum { USUAL_COLUMNS = 80, LABEL_COLUMNS = 12, REPEAT_KEYS_FROM = 40, MOST_LINES = 128, MERGED_LINES = 64 };

enum ink { INK_24BIT, INK_256, INK_BLOCKS, INK_ASCII };

struct page {
    const struct heatmap *map;
    enum ink ink;
    int label; /* columns of the queries' labels */
    int cell;  /* columns of a key */
    int64_t pooled, cells; /* a cell shows the largest weight of so many keys; cells per line */
    int64_t merged, lines; /* and of so many queries; lines per head */
    bool values, upright;  /* weights as numbers; keys' labels from left to right */
};

static enum ink choose_ink(const char *colours) {
    bool is_terminal = isatty(STDOUT_FILENO), unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    enum ink none = is_terminal && unicode ? INK_BLOCKS : INK_ASCII;
    const char *depth = getenv("COLORTERM"), *term = getenv("TERM"), *refused = getenv("NO_COLOR");
    if (colours && strcmp(colours, "24bit") == 0) return INK_24BIT;
    if (colours && strcmp(colours, "256") == 0) return INK_256;
    if ((colours && strcmp(colours, "none") == 0) || !is_terminal || (refused && refused[0])) return none;
    if (depth && (strcmp(depth, "truecolor") == 0 || strcmp(depth, "24bit") == 0)) return INK_24BIT;
    return term && strstr(term, "256color") ? INK_256 : none;
}

static int64_t terminal_columns(void) {
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    long given = columns ? strtol(columns, NULL, 10) : 0;
    return given > 0 && given < 100000 ? given : USUAL_COLUMNS;
}

static int longest(char **texts, int64_t count) {
    int most = 0;
    for (int64_t i = 0; i < count; i++) {
        int columns = tokens_columns(texts[i]);
        if (columns > most) most = columns;
    }
    return most;
}

/* Columns of a cell that shows weights as numbers. */
static int value_columns(const struct heatmap *map) {
    char text[32];
    int most = 0;
    for (int i = 0; i < HEATMAP_WIDE_TEXTS; i++) {
        const int columns = (int)strlen(heatmap_wide_text(map, i, text));
        if (columns > most) most = columns;
    }
    return 1 + most;
}

static struct page lay_out(const struct heatmap *map, const char *colours) {
    struct page page = {.map = map, .ink = choose_ink(colours)};
    int64_t columns = terminal_columns();
    int queries = longest(map->query_texts, map->queries), keys = longest(map->key_texts, map->keys);
    page.label = queries < LABEL_COLUMNS ? queries : LABEL_COLUMNS;
    if (page.label > columns / 3) page.label = (int)(columns / 3);
    int64_t left = columns - page.label - 1, each = left / map->keys;
    int numbers = value_columns(map);
    page.values = each >= numbers;
    int wanted = keys < LABEL_COLUMNS && keys >= numbers ? keys + 1 : numbers;
    page.cell = page.values ? (int)(each < wanted ? each : wanted) : each >= 2 ? 2 : 1;
    page.upright = page.values && keys < page.cell;
    page.pooled = each > 0 ? 1 : left > 0 ? (map->keys + left - 1) / left : map->keys;
    page.cells = (map->keys + page.pooled - 1) / page.pooled;
    /* Many queries are merged like their keys, so that a map stays roughly square. */
    int64_t most = page.pooled == 1 ? MOST_LINES : page.cells > MERGED_LINES ? page.cells : MERGED_LINES;
    page.merged = (map->queries + most - 1) / most;
    page.lines = (map->queries + page.merged - 1) / page.merged;
    return page;
}

/* The nearest colour of the 6 x 6 x 6 cube of 256-colour terminals. */
static int cube_index(uint32_t colour) {
    int index = 16;
    for (int shift = 16, weight = 36; shift >= 0; shift -= 8, weight /= 6) {
        int part = (int)(colour >> shift & 255);
        index += weight * (part < 48 ? 0 : part < 115 ? 1 : (part - 35) / 40);
    }
    return index;
}

static void set_background(enum ink ink, uint32_t colour) {
    const char *text = viridis_wants_black(colour) ? "30" : "97";
    if (ink == INK_24BIT)
        printf("\x1b[%s;48;2;%d;%d;%dm", text, (int)(colour >> 16), (int)(colour >> 8 & 255), (int)(colour & 255));
    else
        printf("\x1b[%s;48;5;%dm", text, cube_index(colour));
}

/* place: 0 ... 1, NaN if not finite. */
static void print_mark(enum ink ink, double place, int columns) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char ascii[] = " .:-=+*#%@";
    for (int i = 0; i < columns; i++) {
        if (isnan(place))
            putchar('?');
        else if (ink == INK_BLOCKS)
            fputs(blocks[(int)(place * 8 + 0.5)], stdout);
        else
            putchar(ink == INK_ASCII ? ascii[(int)(place * 9 + 0.5)] : ' ');
    }
}

static void print_cell(const struct page *page, float weight) {
    char text[32];
    double place = heatmap_place(page->map, weight);
    bool coloured = page->ink <= INK_256;
    if (coloured) set_background(page->ink, isnan(place) ? 0x808080 : viridis(place));
    int length = (int)strlen(heatmap_weight_text(page->map, weight, text));
    if (page->values && length < page->cell) {
        int before = page->upright ? page->cell - length : (page->cell - length) / 2;
        printf("%*s%s%*s", before, "", text, page->cell - before - length, "");
    } else {
        print_mark(page->ink, place, page->cell);
    }
    if (coloured) fputs("\x1b[0m", stdout);
}

/* The weight that a cell shows. NaN first, so that no pooling hides it. */
static float pooled_weight(const struct page *page, int64_t h, int64_t line, int64_t cell) {
    const struct heatmap *map = page->map;
    const int64_t first = line * page->merged, left = cell * page->pooled;
    float most = heatmap_row(map, h, first)[left];
    for (int64_t i = first; i < first + page->merged && i < map->queries; i++) {
        const float *weights = heatmap_row(map, h, i);
        for (int64_t j = left; j < left + page->pooled && j < map->keys; j++) {
            if (!isnan(most) && (isnan(weights[j]) || weights[j] > most)) most = weights[j];
        }
    }
    return most;
}

/* Character `line` of text, in its own column. */
static void print_letter(const char *text, int line, int columns) {
    for (struct text_step step; *text; text += step.bytes) {
        step = text_step(text);
        if (step.columns == 0 || line-- > 0) continue;
        char letter[16] = "";
        memcpy(letter, text, step.bytes < sizeof letter ? step.bytes : 0);
        tokens_print(step.columns > columns ? "?" : letter, columns, false);
        return;
    }
    printf("%*s", columns, "");
}

static void print_keys(const struct page *page) {
    const struct heatmap *map = page->map;
    int lines = page->upright ? 1 : longest(map->key_texts, map->keys);
    if (lines > LABEL_COLUMNS) lines = LABEL_COLUMNS;
    for (int line = 0; line < lines; line++) {
        printf("%*s ", page->label, "");
        for (int64_t cell = 0; cell < page->cells; cell++) {
            const char *text = map->key_texts[cell * page->pooled];
            int before = page->upright ? 0 : (page->cell - 1) / 2;
            printf("%*s", before, "");
            if (page->upright)
                tokens_print(text, page->cell, true);
            else
                print_letter(text, line, page->cell - before);
        }
        putchar('\n');
    }
}

static void print_head(const struct page *page, int64_t h) {
    print_keys(page);
    for (int64_t line = 0; line < page->lines; line++) {
        tokens_print(page->map->query_texts[line * page->merged], page->label, true);
        putchar(' ');
        for (int64_t cell = 0; cell < page->cells; cell++) print_cell(page, pooled_weight(page, h, line, cell));
        putchar('\n');
    }
    if (page->lines >= REPEAT_KEYS_FROM) print_keys(page);
}

static void print_scale(const struct page *page) {
    const struct heatmap *map = page->map;
    const int steps = page->ink == INK_BLOCKS ? 9 : page->ink == INK_ASCII ? 10 : 32;
    const int before = printf("\n%.3g ", (double)map->low) - 1;
    for (int i = 0; i < steps; i++) {
        double place = (double)i / (steps - 1);
        if (page->ink <= INK_256) set_background(page->ink, viridis(place));
        print_mark(page->ink, place, 1);
    }
    printf("%s %.3g\n", page->ink <= INK_256 ? "\x1b[0m" : "", (double)map->high);
    if (map->low < 0 && map->high > 0)
        printf("%*s0\n", before + (int)(heatmap_place(map, 0) * (steps - 1) + 0.5), "");
    if (page->pooled > 1) {
        printf("A column stands for %lld keys, the first of which is named, and shows their largest weight.\n",
               (long long)page->pooled);
    }
    if (page->merged > 1)
        printf("A line stands for %lld queries, the first of which is named, %s.\n", (long long)page->merged,
               page->pooled > 1 ? "likewise" : "and shows their largest weight");
    if (map->nans || map->infinities) {
        printf("%lld NaN and %lld infinite weights are %s.\n", (long long)map->nans, (long long)map->infinities,
               page->values ? "written out" : page->ink <= INK_256 ? "grey" : "question marks");
    }
}

void heatmap_print(const struct heatmap *map, const char *colours) {
    struct page page = lay_out(map, colours);
    tokens_print(map->title, tokens_columns(map->title), false);
    puts(map->title[0] ? ": queries down, keys across" : "Queries down, keys across");
    for (int64_t h = 0; h < map->heads; h++) {
        putchar('\n');
        char name[32];
        if (map->heads > 1) puts(heatmap_head_text(map, h, name));
        print_head(&page, h);
    }
    print_scale(&page);
}
