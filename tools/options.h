/* SPDX-License-Identifier: MIT
 * The options of the verbs. A table for each gives parsing, help and man page. */
#ifndef RAPT_OPTIONS_H
#define RAPT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option_integer {
    bool given;
    int64_t value;
};

struct option_number {
    bool given;
    float value;
};

struct option_pair {
    bool given;
    int64_t first, second;
};

/* Paths and names are NULL where not given. */
struct attend_options {
    const char *query, *key, *value, *out, *lse, *weights;
    const char *mask, *bias, *alibi, *sinks, *kv_lengths;
    const char *layout, *weights_kind, *isa;
    const char *expect, *tokens;
    bool causal, check;
    struct option_integer query_offset, threads, repeat, show_head, show_batch;
    struct option_number scale, softcap, tolerance;
    struct option_pair window;
};

struct bench_options {
    struct option_integer threads;
    struct option_number seconds;
};

enum option_kind { OPTION_HEADING, OPTION_FLAG, OPTION_TEXT, OPTION_INTEGER, OPTION_NUMBER, OPTION_PAIR };

struct option_row {
    enum option_kind kind;
    const char *name;     /* of the option, or the heading */
    const char *argument; /* as help prints it; NULL for flags */
    const char *help;     /* one paragraph */
    size_t offset;        /* in the struct of options */
};

/* They end with a row whose name is NULL. */
extern const struct option_row attend_option_rows[], bench_option_rows[];

/* argv[0] is the verb. They die where an option is unknown, malformed or missing. */
struct attend_options attend_parse(int argc, char **argv);
struct bench_options bench_parse(int argc, char **argv);

/* text as the value of the option; dies where it is no integer. */
int64_t option_to_integer(const char *name, const char *text);

/* An option that would change nothing is a misunderstanding: dies where it is given and not useful. */
void option_needs(const char *name, bool given, bool useful, const char *needed);

/* Fills options, a struct of the kinds of fields above, by rows. verb is what messages call the command line,
 * whose options begin at argv[1]. */
void options_parse(const char *verb, const struct option_row *rows, void *options, int argc, char **argv);

/* The instruction set of this name, RAPT_ISA_AUTO for NULL; dies where there is none. */
int option_isa(const char *name);

/* Dies where given is none of choices, words with one space between; the number of the word, -1 for NULL. */
int option_one_of(const char *name, const char *given, const char *choices);

/* Dies where the option is given and outside 1 ... most. */
void option_at_least_one(const char *name, struct option_integer option, int64_t most);

#endif
