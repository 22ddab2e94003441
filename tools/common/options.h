/* SPDX-License-Identifier: MIT
 * The options of the verbs. Each verb's table yields parsing, help and man page. */
#ifndef RAPT_OPTIONS_H
#define RAPT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rapt/rapt.h"

struct option_integer {
    bool given;
    int64_t value;
};

struct option_number {
    bool given;
    float value;
    double exact;     /* before rounding to float32 */
    const char *text; /* as given, which may be closer to a limit than float can tell */
};

struct option_pair {
    bool given;
    int64_t first, second;
};

enum option_kind { OPTION_HEADING, OPTION_FLAG, OPTION_TEXT, OPTION_INTEGER, OPTION_NUMBER, OPTION_PAIR };

struct option_row {
    enum option_kind kind;
    const char *name;     /* of the option, or the heading */
    const char *argument; /* as help prints it; NULL for flags */
    const char *help;     /* one paragraph; NULL: an older, hidden name of an option */
    size_t offset;        /* in the struct of options */
};

/* text as the option's value; dies if it is no integer. */
int64_t option_to_integer(const char *name, const char *text);

/* An option without effect is a misunderstanding: dies if it is given and not useful. */
void option_needs(const char *name, bool given, bool useful, const char *needed);

/* For verbs whose options have no header. no_option_rows: for verbs without any. */
extern const struct option_row bench_option_rows[], compare_option_rows[], info_option_rows[], no_option_rows[];

/* Fills options, a struct of fields of the kinds above, by rows, the last of which has no name. verb is the name in
 * messages; its options begin at argv[1]. --help prints what `rapt help` does on verb and exits. */
void options_parse(const char *verb, const struct option_row *rows, void *options, int argc, char **argv);

/* The same if other words may follow; returns the index of the first. */
int options_parse_words(const char *verb, const struct option_row *rows, void *options, int argc, char **argv);

/* The instruction set of this name, RAPT_ISA_AUTO for NULL and "auto"; dies if unknown. */
int option_isa(const char *name);

/* The automatic choice; dies if RAPT_ISA names what this machine lacks, or nothing. */
rapt_isa option_isa_chosen(void);

/* The index of given in choices, words separated by spaces; -1 for NULL; dies if it is none of them. */
int option_one_of(const char *name, const char *given, const char *choices);

struct npy_array;

/* index; dies if it is outside 0 ... count - 1. what: of which array has so many, "head". */
int64_t option_index(const char *name, int64_t index, const struct npy_array *array, int64_t count, const char *what);

/* Dies if the option is given and outside 1 ... most. */
void option_at_least_one(const char *name, struct option_integer option, int64_t most);

#endif
