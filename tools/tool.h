/* SPDX-License-Identifier: MIT
 * What every file of the command uses. */
#ifndef RAPT_TOOL_H
#define RAPT_TOOL_H

#include <stddef.h>
#include <stdint.h>

/* Exit statuses: 0 done, 1 a comparison exceeded its tolerance, 2 an error. */
enum { TOOL_EXIT_DIFFERENT = 1, TOOL_EXIT_ERROR = 2 };

/* Prints one line to standard error, discards unfinished output files, exits with TOOL_EXIT_ERROR. */
_Noreturn void tool_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

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
