/* SPDX-License-Identifier: MIT */
#include "layer_options.h"

#include <stdio.h>
#include <string.h>

#include "tool.h"

#define AT(field) offsetof(struct layer_options, field)
#define KIND(name, help) {OPTION_HEADING, name, NULL, help, 0}

const struct option_row layer_option_rows[] = {
    KIND("simplified", "softmax(x * x^T) * x: no weights. --input."),
    KIND("dot", "Scaled dot products of --query, --key and --value, [..., tokens, dim] with any leading dimensions, "
                "--mask; --unscaled is the generalised form."),
    KIND("self", "One head: w_q, w_k, w_v, and b_q, b_k, b_v where there are such; --input."),
    KIND("stacked", "Heads with weights of their own: w_q, w_k, w_v [heads, out, in], b_* [heads, out]; --input."),
    KIND("multi-head", "--heads, the projections of self, and w_o, b_o behind the heads; --input."),
    KIND("cross", "multi-head whose keys come from --memory, and values from --memory-value if that is given."),
    KIND("fused", "multi-head with one projection for all three, w_qkv, b_qkv; --fused-order."),
    KIND("encoder", "Transformer block: fused or multi-head attention, w_ff1, b_ff1, w_ff2, b_ff2, "
         "ln1_gamma, ln1_beta, "
                    "ln2_gamma, ln2_beta; --input."),
    KIND("embedding", "--ids, looked up in embedding [rows, width], then self."),
    KIND("additive", "Bahdanau's attention: w_a, u_a, v_a; --input (decoder states), --memory (annotations)."),
    KIND("luong", "Luong's: --score and --window; w_a [state, memory] for general, w_a and v_a for concat, w_p and v_p "
                  "for local-p, w_c for --attentional-out; --input (decoder states), --memory (encoder states)."),
    KIND("minilm", "all-MiniLM-L6-v2 whole: --ids of sentences, [tokens] or [batch, tokens], --lengths where they are "
                   "padded, to one embedding each; --weights is the model's safetensors file."),

    {OPTION_HEADING, "Arrays", NULL, "Files are .npy in C order, float32 unless said otherwise.", 0},
    {OPTION_TEXT, "out", "FILE", "Where the result goes (needed).", AT(out)},
    {OPTION_TEXT, "weights", "DIR|FILE",
     "The learned weights: a folder with NAME.npy, or a safetensors file with tensors NAME.", AT(weights)},
    {OPTION_TEXT, "prefix", "TEXT", "Stands before each NAME in the weights.", AT(prefix)},
    {OPTION_TEXT, "layout", "NAME", "Of linear layers' weights: out-in (PyTorch), the default, or in-out (x * W).",
     AT(layout)},
    {OPTION_TEXT, "input", "FILE", "[tokens, width] or [batch, tokens, width].", AT(input)},
    {OPTION_TEXT, "memory", "FILE", "What keys and values come from, likewise.", AT(memory)},
    {OPTION_TEXT, "memory-value", "FILE", "What values come from, where that is another.", AT(memory_value)},
    {OPTION_TEXT, "query", "FILE", "The queries.", AT(query)},
    {OPTION_TEXT, "key", "FILE", "The keys.", AT(key)},
    {OPTION_TEXT, "value", "FILE", "The values.", AT(value)},
    {OPTION_TEXT, "ids", "FILE", "int32 or int64 token ids, [tokens] or [batch, tokens].", AT(ids)},
    {OPTION_TEXT, "lengths", "FILE", "int32 or int64 [batch]: how many tokens of each sequence are real.",
     AT(lengths)},
    {OPTION_TEXT, "weights-out", "FILE",
     "Also write the attention weights, [batch, heads, queries, keys]; no batch where the input has none, no heads "
     "where the kind has one.",
     AT(weights_out)},
    {OPTION_TEXT, "attentional-out", "FILE", "Also write tanh(w_c [context; state]).", AT(attentional_out)},

    {OPTION_HEADING, "Attending", NULL, "All off by default.", 0},
    {OPTION_INTEGER, "heads", "N", "The number of heads.", AT(heads)},
    {OPTION_FLAG, "causal", NULL, "A query does not see the keys behind it.", AT(causal)},
    {OPTION_TEXT, "mask", "FILE",
     "bool or int32, not 0 = may attend: [queries, keys], [batch, queries, keys] or [batch, heads, queries, keys]; "
     "sizes of 1 broadcast.",
     AT(mask)},
    {OPTION_NUMBER, "mask-fill", "X", "Replace masked scores by X instead of leaving them out.", AT(mask_fill)},
    {OPTION_FLAG, "unscaled", NULL, "Do not divide scores by sqrt(dim).", AT(unscaled)},
    {OPTION_NUMBER, "drop", "P", "Dropout of attention weights, as in training: zero with probability P.", AT(drop)},
    {OPTION_TEXT, "keep", "FILE", "The weights that dropout keeps, bool, as --mask.", AT(keep)},
    {OPTION_INTEGER, "seed", "N", "Without --keep: the seed of dropout's random numbers; default 0.", AT(seed)},

    {OPTION_HEADING, "Of single kinds", NULL, "", 0},
    {OPTION_TEXT, "fused-order", "NAME",
     "per-head: [query key value] of each head, the default; blocks: all queries, all keys, all values.",
     AT(fused_order)},
    {OPTION_TEXT, "activation", "NAME", "relu, the default, gelu or gelu-tanh.", AT(activation)},
    {OPTION_FLAG, "pre-norm", NULL, "Normalise before attention and feed-forward instead of behind them.",
     AT(pre_norm)},
    {OPTION_NUMBER, "epsilon", "X", "Of layer norm; default 1e-5.", AT(epsilon)},
    {OPTION_TEXT, "score", "NAME", "dot, the default, general or concat.", AT(score)},
    {OPTION_TEXT, "window", "NAME", "global, the default, local-m or local-p.", AT(window)},
    {OPTION_INTEGER, "reach", "N", "How far a local window reaches to both sides.", AT(reach)},

    {OPTION_HEADING, "Running", NULL, "No choice here changes one bit of the result.", 0},
    {OPTION_TEXT, "isa", "NAME",
     "Kernel table to use, one that `rapt info` lists; default the best, or $RAPT_ISA.", AT(isa)},
    {OPTION_INTEGER, "threads", "N", "At most N threads; default as OpenMP decides.", AT(threads)},
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

struct layer_options layer_parse(const struct layer_kind *kind, int argc, char **argv) {
    struct layer_options options = {0};
    options_parse("layer", layer_option_rows, &options, argc, argv);
    for (const struct option_row *row = layer_option_rows; row->name; row++) {
        const bool needed = has_word(kind->needs, row->name) || strcmp(row->name, "out") == 0;
        if (row->kind == OPTION_HEADING) continue;
        if (needed && !is_given(&options, row))
            tool_die("layer %s needs --%s %s (see `rapt help layer`)", kind->name, row->name, row->argument);
        if (is_given(&options, row) && !needed && !has_word(kind->takes, row->name) &&
            !has_word("isa threads", row->name))
            tool_die("layer %s has no --%s (see `rapt help layer`)", kind->name, row->name);
    }
    option_at_least_one("heads", options.heads, 1 << 20);
    option_at_least_one("reach", options.reach, (int64_t)1 << 40);
    option_at_least_one("threads", options.threads, 4096);
    return options;
}
