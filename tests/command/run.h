/* SPDX-License-Identifier: MIT
 * Running the command `rapt` in its own folder, and files to feed it. */
#ifndef RAPT_COMMAND_RUN_H
#define RAPT_COMMAND_RUN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/npy.h"

/* Makes a folder, enters it, and lets shell lines call the command as $rapt and $rapt_failing. wrapper: an emulator for
 * both, or "". */
void command_start(const char *wrapper, const char *rapt, const char *rapt_failing);

/* Whether it was started with a wrapper. */
bool command_is_emulated(void);

/* Lets lines call target, a file or folder, by name, which has no spaces; returns name, or target if it is absent. */
const char *command_link(const char *name, const char *target);

/* Removes the folder. */
void command_stop(void);

/* Runs a shell line. Returns its exit status and output, cut to size. */
struct command_result {
    int status;
    char out[16384], err[2048];
};
struct command_result command_shell(const char *line);

/* The line succeeds with an empty standard error. */
struct command_result expect_success(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The line exits with 2, and standard error is one line that begins with "rapt: " and contains said. No file whose name
 * begins with "new" exists afterwards. */
void expect_error(const char *said, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Files. */
void write_bytes(const char *path, const void *bytes, size_t count);
void write_npy(const char *path, enum npy_type type, const void *data, int dims, const int64_t *shape);

/* A version 1.0 file with this dict, padded as usual, then data_bytes zeros. */
void write_dict(const char *path, const char *dict, size_t data_bytes);

/* float32 [batch, heads, tokens, dim] of dims dimensions (if fewer, the leading ones are 1), values in [-2, 2). */
void write_random(const char *path, int dims, int64_t batch, int64_t heads, int64_t tokens, int64_t dim);

#endif
