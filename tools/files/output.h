/* SPDX-License-Identifier: MIT
 * Result files. Each is claimed before anything is computed, which opens a temporary file beside it; all get their
 * names when every one is complete, or none does. Neither an error nor a full disk nor a signal leaves half a file, a
 * temporary file or a set that does not belong together. */
#ifndef RAPT_OUTPUT_H
#define RAPT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "files/npy.h"

/* Dies where path cannot be written or is that of another result, by whatever name. Files that exist keep their mode;
 * those that are read-only are refused. */
void output_claim(const char *path);

/* The same for an array, which no archive can take: dies where that is what the name says. */
void output_claim_array(const char *path);

/* Dies where a claimed result is the pipe that standard output is, unless nothing is printed there. */
void output_check_report(bool is_printed);

/* Makes a folder for results unless there is one; it goes again where no result gets its name. Dies where it cannot. */
void output_make_folder(const char *path);

/* Writes array completely, but not yet under array->path, which is claimed; dies where that fails. Devices and pipes
 * are written by output_commit, so the data stays as it is until then. */
void output_stage(const struct npy_array *array);

/* The same for a file of any other kind. */
void output_stage_bytes(const char *path, const void *bytes, size_t count);

/* Gives every staged file its name. Dies with all names as they were where one cannot be given. */
void output_commit(void);

#endif
