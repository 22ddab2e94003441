/* SPDX-License-Identifier: MIT */
#include "layer/options.h"

#include <stdio.h>
#include <string.h>

#include "common/tool.h"

#define AT(field) offsetof(struct layer_options, field)

const struct option_row layer_option_rows[] = {
    {OPTION_HEADING, "Arrays", NULL,
     "Files are .npy in C order or FILE.npz:NAME, float32, float16 or bfloat16 unless said otherwise. Results are "
     "float32 .npy files, and never replace an input.", 0},
    {OPTION_TEXT, "out", "FILE", "Where the result goes (required).", AT(out)},
    {OPTION_TEXT, "weights", "DIR|FILE",
     "The learned weights: a folder with NAME.npy, FILE.npz with arrays NAME, or a safetensors file with tensors NAME.",
     AT(weights)},
    {OPTION_TEXT, "prefix", "TEXT", "Text before each NAME in the weights.", AT(prefix)},
    {OPTION_TEXT, "weights-layout", "NAME",
     "Layout of linear layers' weights: out-in (PyTorch), the default, or in-out (x * W).", AT(weights_layout)},
    {OPTION_TEXT, "layout", "NAME", NULL, AT(weights_layout)},
    {OPTION_TEXT, "input", "FILE", "[tokens, width] or [batch, tokens, width].", AT(input)},
    {OPTION_TEXT, "memory", "FILE", "What keys and values come from, shaped likewise.", AT(memory)},
    {OPTION_TEXT, "memory-value", "FILE", "What values come from, if not --memory.", AT(memory_value)},
    {OPTION_TEXT, "query", "FILE", "The queries.", AT(query)},
    {OPTION_TEXT, "key", "FILE", "The keys.", AT(key)},
    {OPTION_TEXT, "value", "FILE", "The values.", AT(value)},
    {OPTION_TEXT, "ids", "FILE", "int32 or int64 token ids, [tokens] or [batch, tokens].", AT(ids)},
    {OPTION_TEXT, "lengths", "FILE", "int32 or int64 [batch]: how many tokens of each sequence are real.",
     AT(lengths)},
    {OPTION_TEXT, "attention-out", "FILE",
     "Also write the attention weights, before dropout, [batch, heads, queries, keys]; without batch where the "
     "input has none, without heads where the kind has one; dot: [..., queries, keys].",
     AT(attention_out)},
    {OPTION_TEXT, "weights-out", "FILE", NULL, AT(attention_out)},
    {OPTION_TEXT, "all-outputs", "DIR",
     "Also write intermediate results as NAME.npy into this folder, which is created if missing: q, k, v (or qkv), "
     "scores (neither scaled nor masked), attention, context (before w_o), and what else the kind has; for stacked "
     "only attention.",
     AT(all_outputs)},
    {OPTION_TEXT, "attentional-out", "FILE", "Also write tanh(w_c [context; state]).", AT(attentional_out)},

    {OPTION_HEADING, "Attending", NULL, "All off by default.", 0},
    {OPTION_INTEGER, "heads", "N", "The number of heads.", AT(heads)},
    {OPTION_FLAG, "causal", NULL,
     "A query does not see the keys after it. Where queries and keys differ in number, the last query stands at the "
     "last key, as with `rapt attend`.",
     AT(causal)},
    {OPTION_INTEGER, "query-offset", "N",
     "Position of the first query among the keys, from which --causal counts. Default: number of keys - number of "
     "queries; 0 aligns both at the start (top left, as PyTorch does).",
     AT(query_offset)},
    {OPTION_TEXT, "mask", "FILE",
     "bool or int32, not 0 = may attend: [queries, keys], [batch, queries, keys] or [batch, heads, queries, keys]; "
     "sizes of 1 broadcast. dot: [..., queries, keys] with the last of its leading dimensions; missing ones broadcast.",
     AT(mask)},
    {OPTION_NUMBER, "mask-fill", "X", "Replace masked scores by X instead of excluding their keys.", AT(mask_fill)},
    {OPTION_FLAG, "unscaled", NULL, "Do not divide scores by sqrt(dim).", AT(unscaled)},
    {OPTION_NUMBER, "drop", "P", "Dropout of attention weights, as in training: zero with probability P.", AT(drop)},
    {OPTION_TEXT, "keep", "FILE", "The weights that dropout keeps, bool, as --mask.", AT(keep)},
    {OPTION_INTEGER, "seed", "N", "Without --keep: the seed of dropout's random numbers; default 0.", AT(seed)},

    {OPTION_HEADING, "For some kinds", NULL, "Options of the kinds that name them.", 0},
    {OPTION_TEXT, "fused-order", "NAME",
     "per-head: [query key value] of each head, the default; blocks: all queries, all keys, all values.",
     AT(fused_order)},
    {OPTION_TEXT, "activation", "NAME", "relu, the default, gelu or gelu-tanh.", AT(activation)},
    {OPTION_FLAG, "pre-norm", NULL, "Normalise before attention and feed-forward instead of after them.",
     AT(pre_norm)},
    {OPTION_NUMBER, "epsilon", "X", "Of layer norm; default 1e-5.", AT(epsilon)},
    {OPTION_TEXT, "score", "NAME", "dot, the default, general or concat.", AT(score)},
    {OPTION_TEXT, "locality", "NAME", "global, the default, local-m or local-p.", AT(locality)},
    {OPTION_TEXT, "window", "NAME", NULL, AT(locality)},
    {OPTION_INTEGER, "reach", "N", "How far local attention reaches on each side.", AT(reach)},

    {OPTION_HEADING, "Running", NULL, "No choice here changes a single bit of the result.", 0},
    {OPTION_TEXT, "isa", "NAME",
     "Kernels to use: some that `rapt info` lists, or auto, the default: $RAPT_ISA, else the best.", AT(isa)},
    {OPTION_INTEGER, "threads", "N", "At most N threads; default as OpenMP decides.", AT(threads)},
    {OPTION_FLAG, "quiet", NULL, "Print nothing but errors and warnings.", AT(quiet)},
    {OPTION_HEADING, NULL, NULL, NULL, 0},
};

static bool has_word(const char *words, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = words; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
    }
    return false;
}

static bool is_given(const struct layer_options *options, const struct option_row *row) {
    const void *field = (const char *)options + row->offset;
    switch (row->kind) {
    case OPTION_FLAG: return *(const bool *)field;
    case OPTION_TEXT: return *(const char *const *)field != NULL;
    case OPTION_INTEGER: return ((const struct option_integer *)field)->given;
    case OPTION_NUMBER: return ((const struct option_number *)field)->given;
    case OPTION_PAIR: return ((const struct option_pair *)field)->given;
    case OPTION_HEADING: break;
    }
    return false;
}

static bool goes_with_all(const char *option) {
    return has_word("isa threads quiet", option);
}

bool layer_needs(const struct layer_kind *kind, const char *option) {
    return has_word(kind->needs, option) || strcmp(option, "out") == 0;
}

bool layer_takes(const struct layer_kind *kind, const char *option) {
    return layer_needs(kind, option) || has_word(kind->takes, option) || goes_with_all(option);
}

struct layer_options layer_parse(const struct layer_kind *kind, int argc, char **argv) {
    struct layer_options options = {0};
    char verb[32];
    snprintf(verb, sizeof verb, "layer %s", kind->name);
    options_parse(verb, layer_option_rows, &options, argc, argv);
    for (const struct option_row *row = layer_option_rows; row->name; row++) {
        if (row->kind == OPTION_HEADING || !row->help) continue;
        if (layer_needs(kind, row->name) && !is_given(&options, row))
            tool_die("%s: --%s %s is required (see `rapt help %s`)", verb, row->name, row->argument, verb);
        if (is_given(&options, row) && !layer_takes(kind, row->name))
            tool_die("layer %s has no --%s (see `rapt help %s`)", kind->name, row->name, verb);
    }
    option_at_least_one("heads", options.heads, 1 << 20);
    option_at_least_one("reach", options.reach, (int64_t)1 << 40);
    option_at_least_one("threads", options.threads, 4096);
    option_needs("query-offset", options.query_offset.given, options.causal, "--causal");
    option_needs("mask-fill", options.mask_fill.given, options.mask, "--mask");
    option_needs("prefix", options.prefix, options.weights, "--weights");
    option_needs("weights-layout", options.weights_layout, options.weights, "--weights");
    return options;
}
