/* SPDX-License-Identifier: MIT
 * Files of tokens, one per line, and how a terminal shows them. */
#ifndef RAPT_TOKENS_H
#define RAPT_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct token_list {
    char **texts;  /* as read: any bytes but line ends */
    int64_t count; /* of the lines, also of those after the first `most`, which have no text */
};

/* Reads the first most lines of path and counts them all; dies where the file cannot be read, or has no end. */
struct token_list tokens_read(const char *path, int64_t most);

/* Terminal columns of the whole text; what cannot be shown counts as one. */
int tokens_columns(const char *text);

/* Prints exactly columns columns: as much of text as they take, a question mark for what cannot be shown, and
 * spaces. */
void tokens_print(const char *text, int columns, bool right);

#endif
