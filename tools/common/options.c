/* SPDX-License-Identifier: MIT */
#include "common/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/suggest.h"
#include "common/tool.h"
#include "files/npy.h"
#include "rapt/rapt.h"
#include "verbs.h"

const struct option_row no_option_rows[] = {{OPTION_HEADING, NULL, NULL, NULL, 0}};

static int64_t parse_integer(const char *name, const char *text, char stop, const char **end) {
    char *rest;
    errno = 0;
    long long value = strtoll(text, &rest, 10);
    if (rest == text || *rest != stop) tool_die("--%s: '%s' is not an integer", name, text);
    if (errno != 0) tool_die("--%s: '%s' overflows 64 bits", name, text);
    *end = rest;
    return value;
}

static struct option_number parse_number(const char *name, const char *text) {
    char *rest;
    errno = 0;
    const float value = strtof(text, &rest);
    if (rest == text || *rest != '\0') tool_die("--%s: '%s' is not a number", name, text);
    if (errno == ERANGE && (value > 1 || value < -1)) tool_die("--%s: '%s' overflows float32", name, text);
    return (struct option_number){true, value, strtod(text, NULL), text};
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
    case OPTION_NUMBER: *(struct option_number *)field = parse_number(row->name, text); break;
    case OPTION_PAIR: *(struct option_pair *)field = parse_pair(row->name, text); break;
    }
}

enum { MAX_OPTIONS = 64, FIRST_VALUE = 256 };

static void fill_long_options(const struct option_row *rows, struct option long_options[MAX_OPTIONS]) {
    int count = 0;
    for (int i = 0; rows[i].name != NULL; i++) {
        const struct option_row *row = &rows[i];
        if (row->kind == OPTION_HEADING) continue;
        long_options[count++] = (struct option){row->name, row->argument ? required_argument : no_argument,
                                                NULL, FIRST_VALUE + i};
    }
    long_options[count] = (struct option){"help", no_argument, NULL, 'h'};
}

static _Noreturn void unknown(const char *verb, const char *text, const struct option_row *rows) {
    char name[64], hint[SUGGEST_TEXT];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 2, "="), text + 2);
    struct suggestion suggestion = {.given = name};
    for (const struct option_row *row = rows; row->name; row++) {
        if (row->kind != OPTION_HEADING && row->help) suggest_consider(&suggestion, row->name);
    }
    tool_die("unknown option --%s%s (see `rapt help %s`)", name, suggest_text(&suggestion, "--", hint), verb);
}

/* The word that getopt_long took for an option, whose value may be inside it or next. */
static const char *word_of(char **argv) {
    const char *last = argv[optind - 1];
    const bool is_inside = optarg && optarg >= last && optarg <= last + strlen(last) && optarg != last;
    return optarg && !is_inside ? argv[optind - 2] : last;
}

int options_parse_words(const char *verb, const struct option_row *rows, void *options, int argc, char **argv) {
    struct option long_options[MAX_OPTIONS] = {0};
    fill_long_options(rows, long_options);
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
        const char *text = argv[optind - 1];
        if (code == ':') tool_die("%s: a value is missing", text);
        if (code == '?' && (optopt >= FIRST_VALUE || (optopt == 'h' && strchr(text, '='))))
            tool_die("%s: the option takes no value", text);
        if (code == '?' && optopt != 0) tool_die("unknown option -%c (see `rapt help %s`)", optopt, verb);
        if (code == '?') unknown(verb, text, rows);
        if (code == 'h') help_exit(verb);
        /* getopt_long accepts unique prefixes, which a later option could make ambiguous. */
        const char *name = rows[code - FIRST_VALUE].name, *word = word_of(argv) + 2;
        if (strncmp(word, name, strlen(name)) != 0) unknown(verb, word - 2, rows);
        store(options, &rows[code - FIRST_VALUE], optarg);
    }
    tool_set_options(optind, argv);
    return optind;
}

void options_parse(const char *verb, const struct option_row *rows, void *options, int argc, char **argv) {
    const int first = options_parse_words(verb, rows, options, argc, argv);
    if (first < argc) tool_die("unexpected argument '%s' (see `rapt help %s`)", argv[first], verb);
}

int64_t option_to_integer(const char *name, const char *text) {
    const char *end;
    return parse_integer(name, text, '\0', &end);
}

int option_isa(const char *name) {
    char names[128] = "";
    if (name == NULL || strcmp(name, "auto") == 0) return RAPT_ISA_AUTO;
    for (int isa = RAPT_ISA_AUTO + 1; rapt_isa_name((rapt_isa)isa); isa++) {
        const char *known = rapt_isa_name((rapt_isa)isa);
        if (strcmp(known, name) == 0) return isa;
        strcat(strcat(names, " "), known);
    }
    tool_die("--isa: '%s' is not one of auto%s", name, names);
}

rapt_isa option_isa_chosen(void) {
    rapt_isa isa = RAPT_ISA_AUTO;
    const rapt_status status = rapt_isa_chosen(&isa);
    const char *name = getenv("RAPT_ISA");
    if (status != RAPT_OK) tool_die("%s: RAPT_ISA=%s (see `rapt info`)", rapt_status_text(status), name ? name : "");
    return isa;
}

int option_one_of(const char *name, const char *given, const char *choices) {
    const char *word = choices;
    if (!given) return -1;
    for (int i = 0; *word; i++) {
        size_t length = strcspn(word, " ");
        if (strlen(given) == length && strncmp(given, word, length) == 0) return i;
        word += length + (word[length] == ' ');
    }
    tool_die("--%s: '%s' is not one of %s", name, given, choices);
}

void option_needs(const char *name, bool given, bool useful, const char *needed) {
    if (given && !useful) tool_die("--%s changes nothing without %s", name, needed);
}

int64_t option_index(const char *name, int64_t index, const struct npy_array *array, int64_t count, const char *what) {
    char shape[NPY_SHAPE_TEXT];
    if (index >= 0 && index < count) return index;
    tool_die("--%s: %lld: %s %s has %lld %s%s, from 0", name, (long long)index, array->path,
             npy_shape_text(array->dims, array->shape, shape), (long long)count, what, count == 1 ? "" : "s");
}

void option_at_least_one(const char *name, struct option_integer option, int64_t most) {
    if (option.given && (option.value < 1 || option.value > most)) {
        tool_die("--%s: %lld is outside 1 ... %lld", name, (long long)option.value, (long long)most);
    }
}
