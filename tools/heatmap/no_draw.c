/* SPDX-License-Identifier: MIT
 * Replaces draw.c in builds without Pango. */
#include "common/tool.h"
#include "heatmap/heatmap.h"

struct heatmap_size heatmap_draw(const struct heatmap *map, bool svg, void **bytes, size_t *count) {
    (void)map, (void)svg, (void)bytes, (void)count;
    tool_die("--out: this rapt was built without pictures: it needs Pango with Cairo (Debian: libpango1.0-dev)");
}
