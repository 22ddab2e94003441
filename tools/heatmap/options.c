/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "common/tool.h"
#include "heatmap/heatmap.h"

#define AT(field) offsetof(struct heatmap_options, field)

const struct option_row heatmap_option_rows[] = {
    {OPTION_HEADING, "What", NULL,
     "Queries go down, keys across. Weights outside 0 ... 1 (scores) are drawn too: the colours then span their "
     "range. NaN and infinities are grey; in pictures, weights of exactly 0, as masked keys have, are hatched.",
     0},
    {OPTION_TEXT, "attention", "FILE",
     "What `rapt attend --attention-out` writes (required): float16, float32 or float64 [queries, keys], [heads, "
     "queries, keys] or [batch, heads, queries, keys].",
     AT(attention)},
    {OPTION_TEXT, "weights", "FILE", NULL, AT(attention)},
    {OPTION_TEXT, "tokens", "FILE",
     "Text, one token per line, one for each query, and for each key without --key-tokens. Default: positions.",
     AT(tokens)},
    {OPTION_TEXT, "key-tokens", "FILE", "The same for the keys, where their tokens differ.", AT(key_tokens)},
    {OPTION_TEXT, "head", "N|all", "The head to draw, from 0, or all of them as a grid; default 0.", AT(head)},
    {OPTION_INTEGER, "batch", "N", "The sequence to draw, from 0; default 0.", AT(batch)},

    {OPTION_HEADING, "How", NULL, "All heads of a picture share one scale.", 0},
    {OPTION_TEXT, "out", "FILE", "A picture, .png or .svg; default: draw with characters on the terminal.",
     AT(out)},
    {OPTION_TEXT, "title", "TEXT", "Stands over the picture; default: a line that says what is drawn.", AT(title)},
    {OPTION_TEXT, "theme", "NAME", "light, the default, or dark: what surrounds the picture.", AT(theme)},
    {OPTION_TEXT, "scale", "NAME",
     "linear, the default, or sqrt: colours go with the square root of a weight, which tells small ones apart.",
     AT(scale)},
    {OPTION_INTEGER, "zoom", "N", "Pixels of a PNG per pixel of an ordinary screen, 1 ... 4; default 2.", AT(zoom)},
    {OPTION_TEXT, "colours", "NAME",
     "On the terminal: 24bit, 256, none, or auto, the default: what $COLORTERM and $TERM promise, none where "
     "the output is not a terminal or $NO_COLOR is set.",
     AT(colours)},
    {OPTION_HEADING, NULL, NULL, NULL, 0},
};

struct heatmap_options heatmap_parse(int argc, char **argv) {
    struct heatmap_options options = {0};
    options_parse(argv[0], heatmap_option_rows, &options, argc, argv);
    if (options.attention == NULL) tool_die("heatmap: --attention FILE is required (see `rapt help heatmap`)");
    return options;
}
