/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "rapt/rapt.h"
#include "tool.h"

#define AT(field) offsetof(struct attend_options, field)

const struct option_row attend_option_rows[] = {
    {OPTION_HEADING, "Arrays", NULL,
     "Files are .npy in C order, float32 (key and value also float16), of 2, 3 or 4 dimensions: [tokens, dim], "
     "[heads, tokens, dim] or [batch, heads, tokens, dim]. Results have as many dimensions as the query.",
     0},
    {OPTION_TEXT, "query", "FILE", "The queries (needed).", AT(query)},
    {OPTION_TEXT, "key", "FILE", "The keys (needed). Query heads are a multiple of key heads.", AT(key)},
    {OPTION_TEXT, "value", "FILE", "The values (needed). Their dim may differ from that of the keys.",
     AT(value)},
    {OPTION_TEXT, "out", "FILE", "Where the result goes, in the layout of the query (needed).", AT(out)},
    {OPTION_TEXT, "layout", "NAME",
     "bhsd: [batch, heads, tokens, dim], the default; bshd: [batch, tokens, heads, dim]. It holds for query, "
     "key, value and out.",
     AT(layout)},
    {OPTION_TEXT, "kv-lengths", "FILE",
     "int32 or int64 [batch]: how many keys of each sequence are real; those behind them are never read.",
     AT(kv_lengths)},
    {OPTION_TEXT, "lse", "FILE",
     "Also write the natural logarithm of each row's sum of exponentials, [batch, heads, queries].", AT(lse)},
    {OPTION_TEXT, "weights", "FILE", "Also write the attention weights, [batch, heads, queries, keys].",
     AT(weights)},
    {OPTION_TEXT, "weights-kind", "KIND",
     "What --weights receives: raw scores (scaled), scores after softcap, scores after bias and mask "
     "(masked), or probabilities (softmax, the default).",
     AT(weights_kind)},

    {OPTION_HEADING, "Scores", NULL,
     "Applied in this order: scale, softcap, bias, ALiBi, mask, causal and window, softmax.", 0},
    {OPTION_NUMBER, "scale", "X", "Factor on every score; default 1/sqrt(dim).", AT(scale)},
    {OPTION_NUMBER, "softcap", "X", "Replace each score s by X*tanh(s/X); 0 is off.", AT(softcap)},
    {OPTION_TEXT, "bias", "FILE",
     "float32, added to the scores; broadcast from the right to [batch, heads, queries, keys] as in NumPy. "
     "-inf excludes.",
     AT(bias)},
    {OPTION_TEXT, "alibi", "FILE|auto",
     "Subtract slope * distance; slopes are float32 [heads], or those of the ALiBi paper.", AT(alibi)},
    {OPTION_TEXT, "mask", "FILE", "bool, true = may attend; broadcast as --bias is.", AT(mask)},
    {OPTION_FLAG, "causal", NULL, "A query does not see the keys behind it.", AT(causal)},
    {OPTION_PAIR, "window", "LEFT,RIGHT", "A query sees LEFT keys before and RIGHT keys after it; -1 = open.",
     AT(window)},
    {OPTION_INTEGER, "query-offset", "N",
     "Position of the first query among the keys, from which --causal, --window and --alibi count. Default: "
     "number of keys - number of queries, per sequence with --kv-lengths; 0 lines both up at the start.",
     AT(query_offset)},
    {OPTION_TEXT, "sinks", "FILE", "float32 [heads]: a score per head that joins the softmax's sum only.",
     AT(sinks)},

    {OPTION_HEADING, "Running", NULL, "No choice here changes one bit of the result.", 0},
    {OPTION_TEXT, "isa", "NAME",
     "Kernel table to use, one that `rapt info` lists; default the best, or $RAPT_ISA.", AT(isa)},
    {OPTION_INTEGER, "threads", "N", "At most N threads; default as OpenMP decides.", AT(threads)},
    {OPTION_INTEGER, "repeat", "N", "Run N times and print the best time; default 1.", AT(repeat)},

    {OPTION_HEADING, "Checking", NULL, "Exit status 1 where a difference exceeds the tolerance.", 0},
    {OPTION_FLAG, "check", NULL, "Compute the same in double, the plain way, and print the largest error.",
     AT(check)},
    {OPTION_TEXT, "expect", "FILE",
     "float32 or float64, shaped as the result: print the largest difference from it.", AT(expect)},
    {OPTION_NUMBER, "tolerance", "X", "Largest difference that --check and --expect accept; default any.",
     AT(tolerance)},

    {OPTION_HEADING, "Showing", NULL, "Which word attends to which, for one head.", 0},
    {OPTION_TEXT, "tokens", "FILE",
     "Text, one token per line, one for each key: print each query's strongest keys.", AT(tokens)},
    {OPTION_INTEGER, "show-head", "N", "The head to show, from 0; default 0.", AT(show_head)},
    {OPTION_INTEGER, "show-batch", "N", "The sequence to show, from 0; default 0.", AT(show_batch)},
    {OPTION_HEADING, NULL, NULL, NULL, 0},
};

#undef AT
#define AT(field) offsetof(struct bench_options, field)

const struct option_row bench_option_rows[] = {
    {OPTION_HEADING, "Running", NULL, "Everything is measured in turns with the peak beside it.", 0},
    {OPTION_INTEGER, "threads", "N", "N threads; default as OpenMP decides.", AT(threads)},
    {OPTION_NUMBER, "seconds", "X", "Time for each row, at least; default 2.", AT(seconds)},
    {OPTION_HEADING, NULL, NULL, NULL, 0},
};

static int64_t parse_integer(const char *name, const char *text, char stop, const char **end) {
    char *rest;
    errno = 0;
    long long value = strtoll(text, &rest, 10);
    if (rest == text || *rest != stop) tool_die("--%s: '%s' is not an integer", name, text);
    if (errno != 0) tool_die("--%s: '%s' overflows 64 bits", name, text);
    *end = rest;
    return value;
}

static float parse_number(const char *name, const char *text) {
    char *rest;
    errno = 0;
    float value = strtof(text, &rest);
    if (rest == text || *rest != '\0') tool_die("--%s: '%s' is not a number", name, text);
    if (errno == ERANGE && (value > 1 || value < -1)) tool_die("--%s: '%s' overflows float32", name, text);
    return value;
}

static struct option_pair parse_pair(const char *name, const char *text) {
    const char *comma = strchr(text, ','), *end;
    if (comma == NULL) tool_die("--%s: '%s' is not two integers with a comma between", name, text);
    struct option_pair pair = {.given = true};
    pair.first = parse_integer(name, text, ',', &end);
    pair.second = parse_integer(name, end + 1, '\0', &end);
    return pair;
}

static void store(void *options, const struct option_row *row, const char *text) {
    void *field = (char *)options + row->offset;
    const char *end;
    switch (row->kind) {
    case OPTION_HEADING: break;
    case OPTION_FLAG: *(bool *)field = true; break;
    case OPTION_TEXT: *(const char **)field = text; break;
    case OPTION_INTEGER:
        *(struct option_integer *)field =
            (struct option_integer){true, parse_integer(row->name, text, '\0', &end)};
        break;
    case OPTION_NUMBER:
        *(struct option_number *)field = (struct option_number){true, parse_number(row->name, text)};
        break;
    case OPTION_PAIR: *(struct option_pair *)field = parse_pair(row->name, text); break;
    }
}

enum { MAX_OPTIONS = 48, FIRST_VALUE = 256 };

static void fill_long_options(const struct option_row *rows, struct option long_options[MAX_OPTIONS]) {
    int count = 0;
    for (int i = 0; rows[i].name != NULL; i++) {
        const struct option_row *row = &rows[i];
        if (row->kind == OPTION_HEADING) continue;
        long_options[count++] = (struct option){row->name, row->argument ? required_argument : no_argument,
                                                NULL, FIRST_VALUE + i};
    }
}

void options_parse(const char *verb, const struct option_row *rows, void *options, int argc, char **argv) {
    struct option long_options[MAX_OPTIONS] = {0};
    fill_long_options(rows, long_options);
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, "+:", long_options, NULL)) != -1;) {
        const char *text = argv[optind - 1];
        if (code == ':') tool_die("%s needs a value", text);
        if (code == '?' && optopt >= FIRST_VALUE) tool_die("%s: the option takes no value", text);
        if (code == '?' && optopt != 0) tool_die("unknown option -%c (see `rapt help %s`)", optopt, verb);
        if (code == '?') tool_die("unknown option %s (see `rapt help %s`)", text, verb);
        store(options, &rows[code - FIRST_VALUE], optarg);
    }
    if (optind < argc) tool_die("unexpected argument '%s'", argv[optind]);
}

static void require(const char *given, const char *name) {
    if (given == NULL) tool_die("attend needs --%s FILE (see `rapt help attend`)", name);
}

struct attend_options attend_parse(int argc, char **argv) {
    struct attend_options options = {0};
    options_parse(argv[0], attend_option_rows, &options, argc, argv);
    require(options.query, "query");
    require(options.key, "key");
    require(options.value, "value");
    require(options.out, "out");
    return options;
}

struct bench_options bench_parse(int argc, char **argv) {
    struct bench_options options = {0};
    options_parse(argv[0], bench_option_rows, &options, argc, argv);
    return options;
}

int64_t option_to_integer(const char *name, const char *text) {
    const char *end;
    return parse_integer(name, text, '\0', &end);
}

int option_isa(const char *name) {
    char names[128] = "";
    if (name == NULL) return RAPT_ISA_AUTO;
    for (int isa = RAPT_ISA_AUTO + 1; rapt_isa_name((rapt_isa)isa); isa++) {
        const char *known = rapt_isa_name((rapt_isa)isa);
        if (strcmp(known, name) == 0) return isa;
        strcat(strcat(names, " "), known);
    }
    tool_die("--isa: '%s' is none of%s", name, names);
}

int option_one_of(const char *name, const char *given, const char *choices) {
    const char *word = choices;
    if (!given) return -1;
    for (int i = 0; *word; i++) {
        size_t length = strcspn(word, " ");
        if (strlen(given) == length && strncmp(given, word, length) == 0) return i;
        word += length + (word[length] == ' ');
    }
    tool_die("--%s: '%s' is none of %s", name, given, choices);
}

void option_needs(const char *name, bool given, bool useful, const char *needed) {
    if (given && !useful) tool_die("--%s changes nothing without %s", name, needed);
}

void option_at_least_one(const char *name, struct option_integer option, int64_t most) {
    if (option.given && (option.value < 1 || option.value > most)) {
        tool_die("--%s: %lld is outside 1 ... %lld", name, (long long)option.value, (long long)most);
    }
}
