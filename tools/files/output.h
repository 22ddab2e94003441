/* SPDX-License-Identifier: MIT
 * Result files. Each is claimed before anything is computed, which opens a temporary file next to it; all get their
 * names once every one is complete, or none does. No error, full disk or signal leaves half a file, a temporary file or
 * an inconsistent set. */
#ifndef RAPT_OUTPUT_H
#define RAPT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "files/npy.h"

/* Dies if path cannot be written or is another result's, by whatever name. Existing files keep their mode; read-only
 * ones are refused. */
void output_claim(const char *path);

/* The same for an array, which cannot go into an archive: dies if path names one. */
void output_claim_array(const char *path);

/* Dies if a claimed result is the file or pipe on standard output, unless nothing is printed there. */
void output_check_report(bool is_printed);

/* Makes a folder for results unless it exists; removed if no result gets its name. Dies on failure. */
void output_make_folder(const char *path);

/* Writes array completely, but not yet under array->path, which is claimed; dies on failure. Devices, pipes and what
 * this process has open, as /dev/stdout, are written by output_commit: data must stay unchanged until then. */
void output_stage(const struct npy_array *array);

/* The same for a file of any other kind. */
void output_stage_bytes(const char *path, const void *bytes, size_t count);

/* Gives every staged file its name. If one fails, dies with all names restored. */
void output_commit(void);

#endif
