/* SPDX-License-Identifier: MIT
 * `rapt help` and the man page, both made from the tables of options. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heatmap.h"
#include "layer_options.h"
#include "options.h"
#include "rapt/rapt.h"
#include "tool.h"
#include "verbs.h"

enum { PAGE_COLUMNS = 80, HELP_INDENT = 24 };

static const char summary[] = "exact attention on CPUs";

static const struct {
    const char *usage, *text;
    const char *name;                     /* where it has options */
    const struct option_row *option_rows; /* likewise */
} verbs[] = {
    {"rapt attend --query FILE --key FILE --value FILE --out FILE [OPTION ...]",
     "Compute softmax(query * key^T / sqrt(dim)) * value on NumPy files and print shapes, kernels, time and "
     "speed.",
     "attend", attend_option_rows},
    {"rapt layer KIND --out FILE [OPTION ...]",
     "Run a layer of attention with its weights: one of the kinds that `rapt help layer` lists.",
     "layer", layer_option_rows},
    {"rapt bench [OPTION ...]",
     "Measure, in less than 20 seconds, what this machine could do, and how much of it four kinds of attention "
     "reach.",
     "bench", bench_option_rows},
    {"rapt heatmap --weights FILE [--tokens FILE] [--head N|all] [--out FILE] [OPTION ...]",
     "Draw which token attends to which, on the terminal or as a PNG or SVG picture.", "heatmap",
     heatmap_option_rows},
    {"rapt info", "Print what this machine offers and which kernels rapt takes.", NULL, NULL},
    {"rapt help [attend|layer|bench|heatmap]", "Print this, or the options of a verb.", NULL, NULL},
    {"rapt --version", "Print the versions of rapt and of its numerics.", NULL, NULL},
};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static const char exit_text[] =
    "0: done; 1: a difference exceeds --tolerance; 2: an error, told in one line on standard "
    "error, and no result file was written.";

/* Words from column on, wrapped at PAGE_COLUMNS, further lines begin at indent. */
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

static void print_option(const struct option_row *row) {
    int column =
        printf("  --%s%s%s", row->name, row->argument ? " " : "", row->argument ? row->argument : "");
    if (column + 2 > HELP_INDENT) {
        putchar('\n');
        column = 0;
    }
    printf("%*s", HELP_INDENT - column, "");
    print_wrapped(row->help, HELP_INDENT, HELP_INDENT);
}

static void help_on(int verb) {
    printf("usage: ");
    print_wrapped(verbs[verb].usage, 7, 11);
    putchar('\n');
    print_wrapped(verbs[verb].text, 0, 0);
    for (const struct option_row *row = verbs[verb].option_rows; row->name; row++) {
        if (row->kind == OPTION_HEADING) {
            printf("\n%s. ", row->name);
            print_wrapped(row->help, (int)strlen(row->name) + 2, 0);
        } else {
            print_option(row);
        }
    }
}

int verb_help(int argc, char **argv) {
    if (argc > 2) tool_die("unexpected argument '%s'", argv[2]);
    for (int i = 0; argc == 2 && i < VERBS; i++) {
        if (!verbs[i].name || strcmp(argv[1], verbs[i].name) != 0) continue;
        help_on(i);
        return EXIT_SUCCESS;
    }
    if (argc == 2) tool_die("there is no help on '%s'", argv[1]);
    printf("rapt: %s\n", summary);
    for (int i = 0; i < VERBS; i++) {
        printf("\n  ");
        print_wrapped(verbs[i].usage, 2, 6);
        printf("      ");
        print_wrapped(verbs[i].text, 6, 6);
    }
    printf("\nExit status ");
    print_wrapped(exit_text, 12, 0);
    return EXIT_SUCCESS;
}

static void roff(const char *text) {
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '\'')
            fputs("\\(aq", stdout);
        else if (*text == '^')
            fputs("\\(ha", stdout);
        else if (*text == '.' && text[1] == '.')
            fputs("\\&.", stdout);
        else
            putchar(*text);
    }
}

static void roff_line(const char *macro, const char *text, const char *more) {
    fputs(macro, stdout);
    roff(text);
    roff(more);
    putchar('\n');
}

static void roff_options(const char *verb, const struct option_row *rows) {
    fputs(".SH OPTIONS OF ", stdout);
    while (*verb) putchar(toupper((unsigned char)*verb++));
    putchar('\n');
    for (const struct option_row *row = rows; row->name; row++) {
        if (row->kind == OPTION_HEADING) {
            roff_line(".SS ", row->name, "");
            roff_line("", row->help, "");
            continue;
        }
        fputs(".TP\n\\fB\\-\\-", stdout);
        roff(row->name);
        if (row->argument) printf("\\fR \\fI%s", row->argument);
        puts("\\fR");
        roff_line("", row->help, "");
    }
}

int verb_man(int argc, char **argv) {
    if (argc > 1) tool_die("unexpected argument '%s'", argv[1]);
    printf(".TH RAPT 1 \"\" \"rapt %s\"\n.nh\n.ad l\n.SH NAME\nrapt \\- %s\n.SH SYNOPSIS\n", RAPT_VERSION_STRING,
           summary);
    for (int i = 0; i < VERBS; i++) roff_line(i ? ".br\n" : "", verbs[i].usage, "");
    puts(".SH DESCRIPTION");
    for (int i = 0; i < VERBS; i++) {
        roff_line(".TP\n.B ", verbs[i].usage, "");
        roff_line("", verbs[i].text, "");
    }
    for (int i = 0; i < VERBS; i++) {
        if (verbs[i].name) roff_options(verbs[i].name, verbs[i].option_rows);
    }
    puts(".SH EXIT STATUS");
    roff_line("", exit_text, "");
    puts(".SH ENVIRONMENT");
    roff_line(".TP\n.B ", "RAPT_ISA", "");
    roff_line("", "The kernel table to use where --isa does not say it.", "");
    roff_line(".TP\n.B ", "OMP_NUM_THREADS", "");
    roff_line("", "How many threads OpenMP would start.", "");
    return EXIT_SUCCESS;
}
