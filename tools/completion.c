/* SPDX-License-Identifier: MIT
 * `rapt completion`: shell scripts, made from the tables of options. Option values are completed as files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"
#include "help.h"
#include "layer/options.h"
#include "verbs.h"

static void print_words(const struct layer_kind *kind, const struct option_row *rows) {
    for (const struct option_row *row = rows; row->name; row++) {
        if (row->kind == OPTION_HEADING || !row->help || (kind && !layer_takes(kind, row->name))) continue;
        printf("--%s ", row->name);
    }
    fputs("--help", stdout);
}

/* Options that take a value. */
static void print_valued(const struct option_row *rows) {
    fputs("valued=\"", stdout);
    for (const struct option_row *row = rows; row->name; row++)
        if (row->argument) printf("--%s ", row->name);
    fputs("\"", stdout);
}

static void print_verbs(void) {
    for (const struct help_verb *verb = help_verbs; verb->name; verb++)
        printf("%s%s", verb == help_verbs ? "" : " ", verb->name);
}

static void print_kinds(void) {
    for (const struct layer_kind *kind = layer_kinds; kind->name; kind++)
        printf("%s%s", kind == layer_kinds ? "" : " ", kind->name);
}

/* What may follow each verb; words: the shell's array of the line, from this index on. */
static void print_cases(const char *words, int first) {
    printf("    case \"${%s[%d]}\" in\n    layer)\n        ", words, first);
    print_valued(layer_option_rows);
    printf("\n        if [ \"$at\" = 2 ]; then choices=\"");
    print_kinds();
    printf("\"; else\n        case \"${%s[%d]}\" in\n", words, first + 1);
    for (const struct layer_kind *kind = layer_kinds; kind->name; kind++) {
        printf("        %s) choices=\"", kind->name);
        print_words(kind, layer_option_rows);
        puts("\" ;;");
    }
    puts("        esac\n        fi ;;");
    for (const struct help_verb *verb = help_verbs; verb->name; verb++) {
        if (verb->rows == layer_option_rows) continue;
        printf("    %s) choices=\"", verb->name);
        if (strcmp(verb->name, "completion") == 0) fputs("bash zsh ", stdout);
        if (strcmp(verb->name, "help") == 0) print_verbs(), putchar(' ');
        print_words(NULL, verb->rows);
        fputs("\" ", stdout);
        print_valued(verb->rows);
        if (strcmp(verb->name, "help") == 0) {
            printf("\n        if [ \"$at\" = 3 ] && [ \"${%s[%d]}\" = layer ]; then choices=\"", words, first + 1);
            print_kinds();
            fputs("\"; fi", stdout);
        }
        puts(" ;;");
    }
    puts("    esac\n    case \" $valued \" in *\" $before \"*) choices= ;; esac");
}

static void print_bash(void) {
    puts("# bash completion for rapt\n_rapt() {\n    local at=$COMP_CWORD word=${COMP_WORDS[COMP_CWORD]}\n"
         "    local before=${COMP_WORDS[COMP_CWORD - 1]} choices= valued=");
    fputs("    if [ \"$at\" = 1 ]; then choices=\"", stdout);
    print_verbs();
    puts("\"; else");
    print_cases("COMP_WORDS", 1);
    puts("    fi\n    COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n}\n"
         "complete -o default -F _rapt rapt");
}

static void print_zsh(void) {
    puts("#compdef rapt\n_rapt() {\n    local at=$((CURRENT - 1)) before=${words[CURRENT - 1]} choices= valued=");
    fputs("    if [ \"$at\" = 1 ]; then choices=\"", stdout);
    print_verbs();
    puts("\"; else");
    print_cases("words", 2);
    puts("    fi\n    compadd -- ${=choices}\n    [ \"$at\" = 1 ] || _files\n}\n"
         "if [ \"$funcstack[1]\" = _rapt ]; then _rapt \"$@\"; else compdef _rapt rapt; fi");
}

int verb_completion(int argc, char **argv) {
    const int first = options_parse_words("completion", no_option_rows, NULL, argc, argv);
    if (argc - first > 1) tool_die("unexpected argument '%s'", argv[first + 1]);
    if (argc == first) tool_die("completion: the shell is missing: bash or zsh");
    if (strcmp(argv[first], "bash") == 0)
        print_bash();
    else if (strcmp(argv[first], "zsh") == 0)
        print_zsh();
    else
        tool_die("'%s' is not a shell that rapt knows: there are bash and zsh", argv[first]);
    return EXIT_SUCCESS;
}
