/* SPDX-License-Identifier: MIT
 * `rapt layer`. */
#include <stdlib.h>
#include <string.h>

#include "layer_kinds.h"
#include "tool.h"
#include "verbs.h"

#define WEIGHTS "prefix layout "
#define ATTEND "weights-out causal mask mask-fill drop keep seed "

static const struct layer_kind kinds[] = {
    {"simplified", "input", "weights-out", layer_simplified},
    {"dot", "query key value", "weights-out causal mask mask-fill unscaled", layer_dot},
    {"self", "weights input", WEIGHTS ATTEND, layer_self},
    {"stacked", "weights input", WEIGHTS ATTEND, layer_stacked},
    {"multi-head", "weights input heads", WEIGHTS ATTEND, layer_multi_head},
    {"cross", "weights input memory heads", WEIGHTS ATTEND "memory-value", layer_cross},
    {"fused", "weights input heads", WEIGHTS ATTEND "fused-order", layer_fused},
    {"encoder", "weights input heads", WEIGHTS ATTEND "fused-order activation pre-norm epsilon", layer_encoder},
    {"embedding", "weights ids", WEIGHTS ATTEND, layer_embedding},
    {"additive", "weights input memory", WEIGHTS ATTEND, layer_additive},
    {"luong", "input memory", WEIGHTS "weights weights-out drop keep seed score window reach attentional-out",
     layer_luong},
    {"minilm", "weights ids", "prefix lengths", layer_minilm},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

int verb_layer(int argc, char **argv) {
    char names[256] = "";
    if (argc < 2) tool_die("layer needs a kind (see `rapt help layer`)");
    for (int i = 0; i < KINDS; i++) {
        strcat(strcat(names, i ? " " : ""), kinds[i].name);
        if (strcmp(argv[1], kinds[i].name) != 0) continue;
        const struct layer_options options = layer_parse(&kinds[i], argc - 1, argv + 1);
        kinds[i].run(&options);
        return EXIT_SUCCESS;
    }
    tool_die("'%s' is no kind of layer: there are %s", argv[1], names);
}
