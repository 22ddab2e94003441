/* SPDX-License-Identifier: MIT
 * Untrusted text, made safe for a terminal. */
#ifndef RAPT_TEXT_H
#define RAPT_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* A character, or an invalid byte. columns: its terminal width; -1: must not be shown, because it controls the
 * terminal, reverses lines or is invalid. */
struct text_step {
    size_t bytes;
    int columns;
};
struct text_step text_step(const char *text);

/* Writes text with \xNN for every byte unsafe in a terminal, \n and \t for these. */
void text_write(FILE *file, const char *text);

/* The same into memory that lives until the command ends. */
const char *text_shown(const char *text);

#endif
