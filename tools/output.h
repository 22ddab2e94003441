/* SPDX-License-Identifier: MIT
 * Result files. All of them are written to temporary files beside their targets first and renamed when every
 * one is complete, so that neither a full disk nor an error leaves half a file or a set that does not belong
 * together. */
#ifndef RAPT_OUTPUT_H
#define RAPT_OUTPUT_H

#include <stddef.h>

#include "npy.h"

/* Writes array completely, but not yet under array->path; dies, with nothing left behind, where that fails.
 * Devices and pipes are written in place. */
void output_stage(const struct npy_array *array);

/* The same for a file of any other kind. */
void output_stage_bytes(const char *path, const void *bytes, size_t count);

/* Gives every staged file its name. */
void output_commit(void);

#endif
