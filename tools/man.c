/* SPDX-License-Identifier: MIT
 * The man page, made from the tables of options. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "help.h"
#include "layer/options.h"
#include "rapt/rapt.h"
#include "verbs.h"

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

static void roff_kinds(void) {
    puts(".SH KINDS OF LAYER");
    for (const struct layer_kind *kind = layer_kinds; kind->name; kind++) {
        roff_line(".TP\n.B ", kind->name, "");
        roff_line("", kind->help, "");
    }
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
        if (!row->help) continue;
        fputs(".TP\n\\fB\\-\\-", stdout);
        roff(row->name);
        if (row->argument) printf("\\fR \\fI%s", row->argument);
        puts("\\fR");
        roff_line("", row->help, "");
    }
}

/* Without hyphenation, which would split option names. */
int verb_man(int argc, char **argv) {
    options_parse("man", no_option_rows, NULL, argc, argv);
    printf(".TH RAPT 1 \"\" \"rapt %s\"\n.nh\n.ad l\n.SH NAME\nrapt \\- %s\n.SH SYNOPSIS\n", RAPT_VERSION_STRING,
           help_summary);
    const struct help_verb *verb;
    for (verb = help_verbs; verb->name; verb++) roff_line(verb == help_verbs ? "" : ".br\n", verb->usage, "");
    puts(".SH DESCRIPTION");
    for (verb = help_verbs; verb->name; verb++) {
        roff_line(".TP\n.B ", verb->usage, "");
        roff_line("", verb->text, "");
    }
    roff_kinds();
    for (verb = help_verbs; verb->name; verb++) {
        if (verb->rows->name) roff_options(verb->name, verb->rows);
    }
    puts(".SH EXIT STATUS");
    roff_line("", help_exit_text, "");
    puts(".SH ENVIRONMENT");
    roff_line(".TP\n.B ", "RAPT_ISA", "");
    roff_line("", "The kernels to use where --isa names none: some that `rapt info` lists, or auto.", "");
    roff_line(".TP\n.B ", "OMP_NUM_THREADS", "");
    roff_line("", "How many threads OpenMP would start.", "");
    return EXIT_SUCCESS;
}
