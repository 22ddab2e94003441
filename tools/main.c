/* SPDX-License-Identifier: MIT
 * The command `rapt`: attention on NumPy files. */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"
#include "common/suggest.h"
#include "common/tool.h"
#include "rapt/rapt.h"
#include "verbs.h"

static int verb_version(int argc, char **argv) {
    options_parse("version", no_option_rows, NULL, argc, argv);
    printf("rapt %s, numerics %d\n", rapt_version(), rapt_numerics_version());
    return EXIT_SUCCESS;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"attend", verb_attend},   {"layer", verb_layer}, {"compare", verb_compare}, {"bench", verb_bench},
    {"heatmap", verb_heatmap}, {"info", verb_info},   {"help", verb_help},       {"completion", verb_completion},
    {"version", verb_version}, {"man", verb_man},     {"--version", verb_version},
};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

static _Noreturn void unknown_verb(const char *given) {
    char hint[SUGGEST_TEXT];
    struct suggestion suggestion = {.given = given};
    for (int i = 0; i < VERBS; i++) suggest_consider(&suggestion, verbs[i].name);
    tool_die("unknown %s '%s'%s (see `rapt help`)", given[0] == '-' ? "option" : "verb", given,
             suggest_text(&suggestion, "", hint));
}

/* Without a locale, assume UTF-8: in the C locale every other letter would be a question mark. */
static void choose_characters(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    bool said = false;
    for (int i = 0; i < 3; i++) {
        const char *text = getenv(names[i]);
        said = said || (text && *text);
    }
    if (said || !setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "");
}

/* A result opened in place of standard error would receive warnings. A closed standard output stays unwritable. */
static void fill_closed_streams(void) {
    for (int i = 0; i < 3; i++) {
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", i == STDOUT_FILENO ? O_RDONLY : O_RDWR) < 0) _exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv) {
    fill_closed_streams();
    /* File size limits cause an error line, not a signal; results survive the reader of standard output. */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    choose_characters();
    if (argc < 2) help_verb_missing();
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) help_exit("rapt");
    for (int i = 0; i < VERBS; i++) {
        if (strcmp(argv[1], verbs[i].name) != 0) continue;
        int status = verbs[i].run(argc - 1, argv + 1);
        tool_flush();
        return status;
    }
    unknown_verb(argv[1]);
}
