/* SPDX-License-Identifier: MIT
 * `rapt layer`. */
#include <stdlib.h>
#include <string.h>

#include "common/suggest.h"
#include "common/tool.h"
#include "layer/kinds.h"
#include "verbs.h"

#define WEIGHTS "prefix weights-layout "
#define MASKS "attention-out all-outputs causal query-offset mask mask-fill"
#define ATTEND MASKS " drop keep seed "

const struct layer_kind layer_kinds[] = {
    {"simplified", "input", "attention-out all-outputs", layer_simplified,
     "softmax(x * x^T) * x: no weights. --input."},
    {"dot", "query key value", MASKS " unscaled", layer_dot,
     "Scaled dot-product attention of --query, --key and --value, [..., tokens, dim] with any leading dimensions, "
     "and --mask; --unscaled is the generalised form."},
    {"self", "weights input", WEIGHTS ATTEND, layer_self,
     "One head: w_q, w_k, w_v, and b_q, b_k, b_v if present; --input."},
    {"stacked", "weights input", WEIGHTS ATTEND, layer_stacked,
     "Heads with weights of their own: w_q, w_k, w_v [heads, out, in], b_* [heads, out]; --input."},
    {"multi-head", "weights input heads", WEIGHTS ATTEND, layer_multi_head,
     "Several heads, --heads: the projections of self, and w_o, b_o after the heads; --input."},
    {"cross", "weights input memory heads", WEIGHTS ATTEND "memory-value", layer_cross,
     "multi-head with keys and values from --memory; values from --memory-value if that is given."},
    {"fused", "weights input heads", WEIGHTS ATTEND "fused-order", layer_fused,
     "multi-head with one projection for queries, keys and values, w_qkv, b_qkv; --fused-order."},
    {"encoder", "weights input heads", WEIGHTS ATTEND "fused-order activation pre-norm epsilon", layer_encoder,
     "Transformer block: fused or multi-head attention, w_ff1, b_ff1, w_ff2, b_ff2, "
     "ln1_gamma, ln1_beta, "
     "ln2_gamma, ln2_beta; --input."},
    {"embedding", "weights ids", WEIGHTS ATTEND, layer_embedding,
     "--ids, looked up in embedding [rows, width], then self."},
    {"additive", "weights input memory", WEIGHTS ATTEND, layer_additive,
     "Bahdanau's attention: w_a, u_a, v_a; --input (decoder states), --memory (annotations)."},
    {"luong", "input memory",
     WEIGHTS "weights attention-out all-outputs drop keep seed score locality reach attentional-out",
     layer_luong,
     "Luong's: --score and --locality; w_a [state, memory] for general, w_a and v_a for concat, w_p and v_p "
     "for local-p, w_c for --attentional-out; --input (decoder states), --memory (encoder states)."},
    {"minilm", "weights ids", "prefix lengths", layer_minilm,
     "The whole model all-MiniLM-L6-v2: from --ids of sentences, [tokens] or [batch, tokens], with --lengths if "
     "they are padded, to one embedding each; --weights is the model's safetensors file."},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct layer_kind *layer_find(const char *name) {
    char names[256] = "", hint[SUGGEST_TEXT];
    struct suggestion suggestion = {.given = name};
    for (const struct layer_kind *kind = layer_kinds; kind->name; kind++) {
        if (strcmp(name, kind->name) == 0) return kind;
        strcat(strcat(names, kind == layer_kinds ? "" : " "), kind->name);
        suggest_consider(&suggestion, kind->name);
    }
    if (name[0] == '-') tool_die("the kind of layer is missing: there are %s", names);
    tool_die("'%s' is not a kind of layer: there are %s%s", name, names, suggest_text(&suggestion, "", hint));
}

int verb_layer(int argc, char **argv) {
    if (argc < 2) tool_die("layer: the kind is missing (see `rapt help layer`)");
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) help_exit("layer");
    const struct layer_kind *kind = layer_find(argv[1]);
    const struct layer_options options = layer_parse(kind, argc - 1, argv + 1);
    kind->run(&options);
    return EXIT_SUCCESS;
}
