/* SPDX-License-Identifier: MIT
 * Files of tokens, one per line, and their form in a terminal. */
#ifndef RAPT_TOKENS_H
#define RAPT_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct token_list {
    char **texts;  /* as read: any bytes but line ends */
    int64_t count; /* of all lines; those after the first `most` have no text */
};

/* Reads the first most lines of path and counts all; dies if the file cannot be read, or has no end. */
struct token_list tokens_read(const char *path, int64_t most);

/* Terminal columns of the whole text; each unprintable counts as one. */
int tokens_columns(const char *text);

/* Prints exactly columns columns: as much of text as fits, question marks for unprintables, and spaces. */
void tokens_print(const char *text, int columns, bool right);

#endif
