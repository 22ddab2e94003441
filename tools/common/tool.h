/* SPDX-License-Identifier: MIT
 * What every file of the command uses. */
#ifndef RAPT_TOOL_H
#define RAPT_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/* Exit statuses: 0 done, 1 a comparison exceeded its tolerance, 2 an error. */
enum { TOOL_EXIT_DIFFERENT = 1, TOOL_EXIT_ERROR = 2 };

/* Prints one line to standard error, discards unfinished output files, exits with TOOL_EXIT_ERROR. */
_Noreturn void tool_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The words of the command line that are options and their values, after which messages name files. */
void tool_set_options(int count, char **words);

/* Messages call this file, by its address, one of option's: the value of none names it. */
void tool_name_file(const char *path, const char *option);

/* "--query" where path is, by its address, that option's value; NULL where it is none's. */
const char *tool_option_of(const char *path);

/* What messages call a file: "--query: q.npy", or its path alone where no option names it. */
const char *tool_file(const char *path);

/* Dies where the path is empty. */
void tool_check_name(const char *path);

/* Dies with what errno says of the file. */
_Noreturn void tool_die_of_file(const char *path, int reason);

/* Notes a file, which status is of, as an input or as a result, which replaces what is there: dies where it is both, by
 * whatever names. */
void tool_note_file(const char *path, const struct stat *status, bool is_result);

/* Opens an input and notes it; dies where that fails. */
FILE *tool_open(const char *path);

/* Prints one line to standard error. */
void tool_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Dies where standard output could not take everything, unless its reader went away, as `head` does. */
void tool_flush(void);

/* count * size bytes, zeroed, until the command ends; dies when they are not there. what names them in
 * the message. */
void *tool_allocate(int64_t count, size_t size, const char *what);

/* a * b; dies where it does not fit. Both are >= 0. */
int64_t tool_product(int64_t a, int64_t b, const char *what);

#endif
