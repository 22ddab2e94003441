/* SPDX-License-Identifier: MIT
 * Shared by all files of the command. */
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

/* Sets the command line's options and their values, by which messages name files. */
void tool_set_options(int count, char **words);

/* Messages call this file, by its address, one of option's: it is no option's value. */
void tool_name_file(const char *path, const char *option);

/* "--query" if path is, by its address, that option's value; NULL if no option's. */
const char *tool_option_of(const char *path);

/* A file's name in messages: "--query: q.npy", or only its path if no option names it. */
const char *tool_file(const char *path);

/* Dies if the path is empty. */
void tool_check_name(const char *path);

/* Dies with errno's text for the file. */
_Noreturn void tool_die_of_file(const char *path, int reason);

/* Notes a file, with its status, as an input or as a result, which replaces what is there: dies if it is both, by
 * whatever names. */
void tool_note_file(const char *path, const struct stat *status, bool is_result);

/* Opens an input and notes it; dies on failure. */
FILE *tool_open(const char *path);

/* Prints one line to standard error. */
void tool_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Dies if standard output failed, unless its reader left, as `head` does. */
void tool_flush(void);

/* count * size bytes, zeroed, until the command ends; dies if there are not enough. what names them in the message. */
void *tool_allocate(int64_t count, size_t size, const char *what);

/* a * b; dies on overflow. Both are >= 0. */
int64_t tool_product(int64_t a, int64_t b, const char *what);

#endif
