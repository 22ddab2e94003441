/* SPDX-License-Identifier: MIT
 * `rapt help`, made from the tables of options. */
#include "help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attend/options.h"
#include "common/suggest.h"
#include "common/tool.h"
#include "heatmap/heatmap.h"
#include "layer/options.h"
#include "verbs.h"

enum { PAGE_COLUMNS = 80, HELP_INDENT = 24 };

const char help_summary[] = "exact attention on CPUs";

const struct help_verb help_verbs[] = {
    {"attend", "rapt attend --query FILE --key FILE --value FILE --out FILE [OPTION ...]",
     "Compute softmax(query * key^T / sqrt(dim)) * value on NumPy files and print shapes, kernels, time and "
     "speed.",
     attend_option_rows},
    {"layer", "rapt layer KIND --out FILE [OPTION ...]",
     "Run an attention layer with its weights: one of the kinds that `rapt help layer` lists.", layer_option_rows},
    {"compare", "rapt compare FILE FILE [OPTION ...]",
     "Print the largest difference between two arrays; the exit status is 1 where it exceeds the tolerance.",
     compare_option_rows},
    {"bench", "rapt bench [OPTION ...]",
     "Measure, in less than 20 seconds, what this machine could do, and how much of it four kinds of attention "
     "reach.",
     bench_option_rows},
    {"heatmap", "rapt heatmap --attention FILE [--tokens FILE] [--head N|all] [--out FILE] [OPTION ...]",
     "Draw which token attends to which, on the terminal or as a PNG or SVG picture.", heatmap_option_rows},
    {"info", "rapt info [--json]",
     "Print what this machine offers, how rapt was built and which kernels it uses: paste it into bug reports.",
     info_option_rows},
    {"help", "rapt help [VERB [KIND]]", "Print this, or the options of a verb or of a kind of layer.", no_option_rows},
    {"completion", "rapt completion bash|zsh", "Print a script that completes verbs and options in this shell.",
     no_option_rows},
    {"version", "rapt version", "Print the versions of rapt and of its numerics.", no_option_rows},
    {"man", "rapt man", "Print the manual page, in the form that man reads.", no_option_rows},
    {NULL, NULL, NULL, NULL},
};

const char help_exit_text[] =
    "0: done; 1: a difference exceeds the tolerance; 2: an error, described in one line on standard "
    "error; no result file was written.";

/* Words from column on, wrapped at PAGE_COLUMNS; further lines begin at indent. */
static void print_wrapped(const char *text, int column, int indent) {
    for (const char *word = text; *word;) {
        int length = (int)strcspn(word, " "), space = word != text;
        if (column + space + length > PAGE_COLUMNS) {
            printf("\n%*s", indent, "");
            column = indent;
            space = 0;
        }
        printf("%s%.*s", space ? " " : "", length, word);
        column += space + length;
        word += length;
        word += *word == ' ';
    }
    putchar('\n');
}

/* text from HELP_INDENT on, after a term of `column` columns. */
static void print_meaning(int column, const char *text) {
    if (column + 2 > HELP_INDENT) {
        putchar('\n');
        column = 0;
    }
    printf("%*s", HELP_INDENT - column, "");
    print_wrapped(text, HELP_INDENT, HELP_INDENT);
}

static void print_option(const struct option_row *row) {
    const int column =
        printf("  --%s%s%s", row->name, row->argument ? " " : "", row->argument ? row->argument : "");
    print_meaning(column, row->help);
}

/* All options, or those of a kind of layer, under their headings. */
static void print_options(const struct option_row *rows, const struct layer_kind *kind) {
    const struct option_row *heading = NULL;
    for (const struct option_row *row = rows; row->name; row++) {
        if (row->kind == OPTION_HEADING) {
            heading = row;
            continue;
        }
        if (!row->help || (kind && !layer_takes(kind, row->name))) continue;
        if (heading) {
            printf("\n%s. ", heading->name);
            print_wrapped(heading->help, (int)strlen(heading->name) + 2, 0);
        }
        heading = NULL;
        print_option(row);
    }
}

static void print_usage(const char *usage) {
    printf("usage: ");
    print_wrapped(usage, 7, 11);
    putchar('\n');
}

static void help_on_kind(const struct layer_kind *kind) {
    char usage[256];
    int length = snprintf(usage, sizeof usage, "rapt layer %s", kind->name);
    for (const struct option_row *row = layer_option_rows; row->name; row++) {
        if (row->kind != OPTION_HEADING && row->help && layer_needs(kind, row->name))
            length += snprintf(usage + length, sizeof usage - (size_t)length, " --%s %s", row->name, row->argument);
    }
    snprintf(usage + length, sizeof usage - (size_t)length, " [OPTION ...]");
    print_usage(usage);
    print_wrapped(kind->help, 0, 0);
    print_options(layer_option_rows, kind);
}

static void help_on(const struct help_verb *verb) {
    print_usage(verb->usage);
    print_wrapped(verb->text, 0, 0);
    if (verb->rows == layer_option_rows) {
        puts("\nKinds. `rapt help layer KIND` tells what one of them takes.");
        for (const struct layer_kind *kind = layer_kinds; kind->name; kind++)
            print_meaning(printf("  %s", kind->name), kind->help);
    }
    print_options(verb->rows, NULL);
}

static void help_on_all(void) {
    printf("rapt: %s\n", help_summary);
    for (const struct help_verb *verb = help_verbs; verb->name; verb++) {
        printf("\n  ");
        print_wrapped(verb->usage, 2, 6);
        printf("      ");
        print_wrapped(verb->text, 6, 6);
    }
    printf("\nExit status ");
    print_wrapped(help_exit_text, 12, 0);
}

static const struct help_verb *find_verb(const char *name) {
    char hint[SUGGEST_TEXT];
    struct suggestion suggestion = {.given = name};
    for (const struct help_verb *verb = help_verbs; verb->name; verb++) {
        if (strcmp(name, verb->name) == 0) return verb;
        suggest_consider(&suggestion, verb->name);
    }
    tool_die("there is no help on '%s'%s", name, suggest_text(&suggestion, "", hint));
}

int verb_help(int argc, char **argv) {
    struct { char unused; } none;
    const int words = options_parse_words("help", no_option_rows, &none, argc, argv);
    argv += words, argc -= words;
    if (argc > 2) tool_die("unexpected argument '%s'", argv[2]);
    const struct help_verb *verb = argc > 0 ? find_verb(argv[0]) : NULL;
    if (argc == 2 && verb->rows != layer_option_rows) tool_die("unexpected argument '%s'", argv[1]);
    if (argc == 2)
        help_on_kind(layer_find(argv[1]));
    else if (argc == 1)
        help_on(verb);
    else
        help_on_all();
    return EXIT_SUCCESS;
}

void help_verb_missing(void) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    help_on_all();
    fflush(stdout);
    exit(TOOL_EXIT_ERROR);
}

void help_exit(const char *topic) {
    const char *kind = strchr(topic, ' ');
    char verb[32];
    snprintf(verb, sizeof verb, "%.*s", (int)strcspn(topic, " "), topic);
    if (kind)
        help_on_kind(layer_find(kind + 1));
    else if (strcmp(verb, "rapt") == 0)
        help_on_all();
    else
        help_on(find_verb(verb));
    tool_flush();
    exit(EXIT_SUCCESS);
}
