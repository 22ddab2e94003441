/* SPDX-License-Identifier: MIT
 * `rapt heatmap`. */
#include "heatmap/heatmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "common/tool.h"
#include "files/output.h"
#include "verbs.h"

static bool ends_in(const char *path, const char *ending) {
    size_t length = strlen(path), ending_length = strlen(ending);
    return length > ending_length && strcmp(path + length - ending_length, ending) == 0;
}

static void check_options(const struct heatmap_options *o) {
    option_one_of("theme", o->theme, "light dark");
    option_one_of("scale", o->scale, "linear sqrt");
    option_one_of("colours", o->colours, "auto 24bit 256 none");
    option_needs("theme", o->theme, o->out, "--out");
    option_needs("zoom", o->zoom.given, o->out && ends_in(o->out, ".png"), "--out FILE.png");
    option_at_least_one("zoom", o->zoom, 4);
    if (o->out && o->colours) tool_die("--colours is for the terminal: it does not go with --out");
    if (o->out && !ends_in(o->out, ".png") && !ends_in(o->out, ".svg")) {
        tool_die("--out: '%s' ends neither in .png nor in .svg", o->out);
    }
}

static void report(const struct heatmap *map) {
    printf("weights  %s, %lld head%s of %lld quer%s, %lld key%s\n", text_shown(map->path), (long long)map->heads,
           map->heads == 1 ? "" : "s", (long long)map->queries, map->queries == 1 ? "y" : "ies",
           (long long)map->keys, map->keys == 1 ? "" : "s");
    printf("colours  %.4g ... %.4g%s\n", (double)map->low, (double)map->high,
           map->probabilities ? "" : ", as weights lie outside 0 ... 1");
    if (map->nans || map->infinities)
        printf("grey     %lld NaN, %lld infinite\n", (long long)map->nans, (long long)map->infinities);
}

int verb_heatmap(int argc, char **argv) {
    struct heatmap_options options = heatmap_parse(argc, argv);
    check_options(&options);
    if (options.out) output_claim(options.out);
    struct heatmap map = heatmap_load(&options);
    if (options.out == NULL) {
        heatmap_print(&map, options.colours);
        return EXIT_SUCCESS;
    }
    void *bytes;
    size_t count;
    bool svg = ends_in(options.out, ".svg");
    struct heatmap_size size = heatmap_draw(&map, svg, &bytes, &count);
    output_stage_bytes(options.out, bytes, count);
    report(&map);
    printf("out      %s %d x %d%s\n", text_shown(options.out), size.width, size.height, svg ? "" : " pixels");
    tool_flush();
    output_commit();
    return EXIT_SUCCESS;
}
