/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "arguments.h"

#include "measure.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: rapt_bench [--json FILE] [--seconds S] [--list] [--benchmark_filter=REGEX] [--benchmark_...]\n"
    "\n"
    "  --json FILE              write Google Benchmark's JSON, too\n"
    "  --seconds S              time for each row, at least (default 2; all rows take a few minutes)\n"
    "  --benchmark_filter=REGEX rows whose name matches (-REGEX: does not match)\n"
    "  --list                   print the names and stop\n"
    "\n"
    "Other options are Google Benchmark's. benchmarks/README.md says what rows and columns mean.\n";

struct arguments arguments = {.seconds = 2};

static regex_t filter;
static bool filter_inverts;

static void stop(int status, const char *message) {
    fputs(message, status ? stderr : stdout);
    exit(status);
}

static const char *value_of(const char *option, char **argv, int *i) {
    size_t length = strlen(option);
    if (strncmp(argv[*i], option, length) != 0)
        return NULL;
    if (argv[*i][length] == '=')
        return argv[*i] + length + 1;
    if (argv[*i][length] != '\0')
        return NULL;
    if (!argv[*i + 1])
        stop(2, usage);
    return argv[++*i];
}

static void pass_on(char *argument) {
    if (arguments.count == sizeof arguments.values / sizeof arguments.values[0] - 1)
        stop(2, "rapt_bench: too many arguments\n");
    arguments.values[arguments.count++] = argument;
}

/* Google Benchmark would match names with its own suffixes, so rows are chosen here. */
static void compile_filter(void) {
    const char *text = arguments.filter ? arguments.filter : "";
    filter_inverts = text[0] == '-';
    if (regcomp(&filter, text + filter_inverts, REG_EXTENDED | REG_NOSUB) != 0)
        stop(2, "rapt_bench: the filter is no regular expression\n");
}

void arguments_parse(int argc, char **argv) {
    static char out[4096];
    const char *value;
    pass_on(argv[0]);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            stop(0, usage);
        else if (strcmp(argv[i], "--list") == 0 || strcmp(argv[i], "--benchmark_list_tests") == 0)
            arguments.list = true;
        else if ((value = value_of("--benchmark_filter", argv, &i)))
            arguments.filter = value;
        else if ((value = value_of("--seconds", argv, &i))) {
            if (!seconds_parse(value, &arguments.seconds))
                stop(2, "rapt_bench: --seconds takes a number, 0 ... 3600\n");
        } else if ((value = value_of("--json", argv, &i))) {
            if ((size_t)snprintf(out, sizeof out, "--benchmark_out=%s", value) >= sizeof out)
                stop(2, "rapt_bench: the name of the file is too long\n");
            pass_on(out);
        } else
            pass_on(argv[i]);
    }
    compile_filter();
}

bool arguments_want(const char *name) {
    bool matches = regexec(&filter, name, 0, NULL, 0) == 0;
    if (matches != filter_inverts && arguments.list)
        puts(name);
    return matches != filter_inverts;
}
