/* SPDX-License-Identifier: MIT */
#include "attend/options.h"

#include <string.h>

#include "attend/dropout.h"
#include "attend/kv_type.h"
#include "common/tool.h"

#define AT(field) offsetof(struct attend_options, field)

const struct option_row attend_option_rows[] = {
    {OPTION_HEADING, "Arrays", NULL,
     "Files are .npy in C order, or members of .npz archives as FILE.npz:NAME; float32, float16 or bfloat16 (as "
     "ml_dtypes saves it, items '<V2'), of 2, 3 or 4 dimensions: [tokens, dim], [heads, tokens, dim] or [batch, heads, "
     "tokens, dim]. Results are .npy files with as many dimensions as the query, and never replace an input.",
     0},
    {OPTION_TEXT, "query", "FILE", "The queries (required).", AT(query)},
    {OPTION_TEXT, "key", "FILE", "The keys (required). Query heads are a multiple of key heads.", AT(key)},
    {OPTION_TEXT, "value", "FILE", "The values (required). Their dim may differ from that of the keys.",
     AT(value)},
    {OPTION_TEXT, "out", "FILE", "Where the result goes, in the layout of the query (required).", AT(out)},
    {OPTION_TEXT, "layout", "NAME",
     "bhsd: [batch, heads, tokens, dim], the default; bshd: [batch, tokens, heads, dim]. It applies to query, "
     "key, value and out.",
     AT(layout)},
    {OPTION_TEXT, "query-type", "TYPE", "f32, f16 or bf16: round the queries to this type first.", AT(query_type)},
    {OPTION_TEXT, "key-type", "TYPE",
     "Convert the keys to this storage type first, as a cache would hold them: f32, f16, bf16, q8_0 and others that "
     "docs/types.md compares. --check still compares with the keys as they were given.",
     AT(key_type)},
    {OPTION_TEXT, "value-type", "TYPE", "The same for the values.", AT(value_type)},
    {OPTION_TEXT, "kv-type", "TYPE", "The same for keys and values.", AT(kv_type)},
    {OPTION_TEXT, "out-type", "TYPE", "f32, f16 or bf16: what --out is rounded to; default f32.", AT(out_type)},
    {OPTION_TEXT, "pages", "FILE",
     "The page table: int32 or int64 [batch, n], the numbers of each sequence's pages, in order. Keys and values are "
     "pages, [pages, heads, tokens of a page, dim]. With --kv-lengths, entries after a sequence's length are ignored.",
     AT(pages)},
    {OPTION_TEXT, "query-lengths", "FILE",
     "int32 or int64 [batch]: how many queries of each sequence are real; the rows of the others are 0.",
     AT(query_lengths)},
    {OPTION_TEXT, "kv-lengths", "FILE",
     "int32 or int64 [batch]: how many keys of each sequence are real; those after them are never read.",
     AT(kv_lengths)},
    {OPTION_TEXT, "lse", "FILE",
     "Also write the natural logarithm of each row's sum of exponentials, [batch, heads, queries].", AT(lse)},
    {OPTION_TEXT, "attention-out", "FILE", "Also write the attention weights, [batch, heads, queries, keys].",
     AT(attention_out)},
    {OPTION_TEXT, "weights", "FILE", NULL, AT(attention_out)},
    {OPTION_TEXT, "attention-kind", "KIND",
     "What --attention-out receives. raw: scaled scores; softcap: scores after softcap; masked: scores after bias and "
     "mask; softmax, the default: probabilities before dropout.",
     AT(attention_kind)},
    {OPTION_TEXT, "weights-kind", "KIND", NULL, AT(attention_kind)},

    {OPTION_HEADING, "Scores", NULL,
     "Applied in this order: scale, softcap, bias, ALiBi, mask, causal and window, softmax, dropout.", 0},
    {OPTION_NUMBER, "scale", "X", "Factor on every score; default 1/sqrt(dim).", AT(scale)},
    {OPTION_NUMBER, "softcap", "X", "Replace each score s by X*tanh(s/X); 0 is off.", AT(softcap)},
    {OPTION_TEXT, "bias", "FILE",
     "Added to the scores; broadcast from the right to [batch, heads, queries, keys] as in NumPy. -inf excludes.",
     AT(bias)},
    {OPTION_TEXT, "bias-factor", "FILE", "[heads]: a factor on --bias for each query head.", AT(bias_factor)},
    {OPTION_TEXT, "alibi", "FILE|auto",
     "Subtract slope * distance; slopes are [heads], or those of the ALiBi paper (auto).", AT(alibi)},
    {OPTION_TEXT, "mask", "FILE", "bool, true = may attend; broadcast as --bias is.", AT(mask)},
    {OPTION_NUMBER, "mask-fill", "X", "Replace masked scores by X instead of excluding their keys.", AT(mask_fill)},
    {OPTION_FLAG, "causal", NULL,
     "A query does not see the keys after it. Where queries and keys differ in number, the last query stands at the "
     "last key, unless one of the options below says otherwise.",
     AT(causal)},
    {OPTION_PAIR, "window", "LEFT,RIGHT", "A query sees LEFT keys before and RIGHT keys after it; -1 = open.",
     AT(window)},
    {OPTION_TEXT, "tree", "FILE",
     "bool [batch, queries, T], T up to 64: which of a sequence's last T keys each query sees, as for the tokens of a "
     "tree in speculative decoding. Without batch: the same for all sequences.",
     AT(tree)},
    {OPTION_TEXT, "key-blocks", "FILE",
     "int32 or int64 [batch, key heads, blocks of queries, n]: the numbers of the blocks of keys that each block of "
     "queries sees, in any order; -1 is no block. The first two dimensions may be 1 or missing.",
     AT(key_blocks)},
    {OPTION_PAIR, "block-size", "QUERIES,KEYS", "How many tokens these blocks have.", AT(block_size)},
    {OPTION_INTEGER, "query-offset", "N",
     "Position of the first query among the keys, from which --causal, --window and --alibi count. Default: "
     "number of keys - number of queries, by sequence; 0 aligns both at the start (top left, as PyTorch does).",
     AT(query_offset)},
    {OPTION_TEXT, "query-positions", "FILE", "int32 or int64 [batch]: the same, one for each sequence.",
     AT(query_positions)},
    {OPTION_TEXT, "key-positions", "FILE",
     "int32 or int64 [batch]: position of each sequence's first key; default 0.", AT(key_positions)},
    {OPTION_TEXT, "sinks", "FILE", "[heads]: a score per query head, added to the softmax's sum only.", AT(sinks)},
    {OPTION_NUMBER, "drop", "P", "Dropout of attention weights, as in training: zero with probability P.", AT(drop)},
    {OPTION_TEXT, "keep", "FILE", "The weights that dropout keeps: bool, true = keep; broadcast as --bias is.",
     AT(keep)},
    {OPTION_INTEGER, "seed", "N", "Without --keep: the seed of dropout's random numbers; default 0.", AT(seed)},

    {OPTION_TEXT, "numerics", "1|2|3|fastest",
     "The order of operations, which decides the bits: 1, the default, computes in float32; 2 is that of matrix units, "
     "for bfloat16 or float16 (--query-type and --kv-type convert); 3 is theirs for float32; fastest takes what "
     "suits this machine and these types, and the report says which.",
     AT(numerics)},

    {OPTION_HEADING, "Running", NULL, "No choice here changes a single bit of the result.", 0},
    {OPTION_TEXT, "isa", "NAME",
     "Kernels to use: some that `rapt info` lists, or auto, the default: $RAPT_ISA, else the best.", AT(isa)},
    {OPTION_INTEGER, "threads", "N", "At most N threads; default as OpenMP decides.", AT(threads)},
    {OPTION_INTEGER, "repeat", "N", "Run N times and print the best time; default 1.", AT(repeat)},
    {OPTION_FLAG, "json", NULL, "Print the report as JSON.", AT(json)},
    {OPTION_FLAG, "quiet", NULL, "Print nothing but errors and warnings.", AT(quiet)},

    {OPTION_HEADING, "Checking", NULL, "The exit status is 1 where a difference exceeds the tolerance.", 0},
    {OPTION_FLAG, "check", NULL, "Compute the same in double precision, the plain way, and print the largest error.",
     AT(check)},
    {OPTION_TEXT, "expect", "FILE",
     "float16, bfloat16, float32 or float64, shaped as the result: print the largest difference from it.", AT(expect)},
    {OPTION_NUMBER, "tolerance", "X",
     "Largest difference that --check and --expect accept; default any. --check holds --lse and --attention-out to it, "
     "too, where rows whose largest number is above 1 may differ by X times that number.",
     AT(tolerance)},

    {OPTION_HEADING, "Showing", NULL, "Which word attends to which, for one head.", 0},
    {OPTION_TEXT, "tokens", "FILE",
     "Text, one token per line, one for each key: print each query's strongest keys.", AT(tokens)},
    {OPTION_INTEGER, "show-head", "N", "The head to show, from 0; default 0.", AT(show_head)},
    {OPTION_INTEGER, "show-batch", "N", "The sequence to show, from 0; default 0.", AT(show_batch)},
    {OPTION_HEADING, NULL, NULL, NULL, 0},
};

static void require(const char *given, const char *name) {
    if (given == NULL) tool_die("attend: --%s FILE is required (see `rapt help attend`)", name);
}

static void check_scores(const struct attend_options *o) {
    const bool counts = o->causal || o->window.given || o->alibi;
    static const char positions[] = "--causal, --window or --alibi";
    option_needs("query-offset", o->query_offset.given, counts, positions);
    option_needs("query-positions", o->query_positions, counts, positions);
    option_needs("key-positions", o->key_positions, counts, positions);
    option_needs("bias-factor", o->bias_factor, o->bias, "--bias");
    option_needs("block-size", o->block_size.given, o->key_blocks, "--key-blocks");
    if (o->key_blocks && !o->block_size.given) tool_die("--key-blocks requires --block-size QUERIES,KEYS");
    option_needs("mask-fill", o->mask_fill.given, o->mask, "--mask");
    option_needs("keep", o->keep, o->drop.given, "--drop");
    option_needs("seed", o->seed.given, o->drop.given, "--drop");
    if (o->keep && o->seed.given) tool_die("--seed changes nothing with --keep");
    dropout_check(o->drop);
    if (o->softcap.value == 0 && o->softcap.exact != 0)
        tool_die("--softcap: %s is 0 when rounded to float32, which is off", o->softcap.text);
    if (o->query_offset.given && o->query_positions)
        tool_die("--query-offset and --query-positions: give one of them");
}

static void check_report(const struct attend_options *o) {
    const bool softmax = !o->attention_kind || strcmp(o->attention_kind, "softmax") == 0;
    if (o->tolerance.given && !(o->tolerance.exact >= 0))
        tool_die("--tolerance: %g is not 0 or more", o->tolerance.exact);
    option_needs("tolerance", o->tolerance.given, o->check || o->expect, "--check or --expect");
    option_needs("show-head", o->show_head.given, o->tokens, "--tokens");
    option_needs("show-batch", o->show_batch.given, o->tokens, "--tokens");
    if (o->tokens && !softmax)
        tool_die("--tokens shows softmax weights: it does not go with --attention-kind %s", o->attention_kind);
    if (o->tokens && (o->json || o->quiet)) tool_die("--tokens does not go with --%s", o->json ? "json" : "quiet");
    if (o->json && o->quiet) tool_die("--json does not go with --quiet");
}

struct attend_options attend_parse(int argc, char **argv) {
    struct attend_options options = {0};
    options_parse(argv[0], attend_option_rows, &options, argc, argv);
    require(options.query, "query");
    require(options.key, "key");
    require(options.value, "value");
    require(options.out, "out");
    option_one_of("layout", options.layout, "bhsd bshd");
    option_one_of("query-type", options.query_type, "f32 f16 bf16");
    option_one_of("out-type", options.out_type, "f32 f16 bf16");
    option_one_of("numerics", options.numerics, "1 2 3 fastest");
    kv_type_check("key-type", options.key_type);
    kv_type_check("value-type", options.value_type);
    kv_type_check("kv-type", options.kv_type);
    if (options.kv_type && options.key_type && options.value_type)
        tool_die("--kv-type changes nothing with --key-type and --value-type");
    option_one_of("attention-kind", options.attention_kind, "raw softcap masked softmax");
    option_at_least_one("threads", options.threads, 4096);
    option_at_least_one("repeat", options.repeat, 1000000);
    option_needs("attention-kind", options.attention_kind, options.attention_out, "--attention-out");
    check_scores(&options);
    check_report(&options);
    return options;
}
