/* SPDX-License-Identifier: MIT
 * Texts of unknown origin, as a terminal can show them. */
#ifndef RAPT_TEXT_H
#define RAPT_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* A character, or a byte that begins none. columns: what it takes in a terminal; -1: it must not get there, since it
 * controls the terminal, turns lines or means nothing. */
struct text_step {
    size_t bytes;
    int columns;
};
struct text_step text_step(const char *text);

/* Writes text with \xNN for every byte that must not get to a terminal, \n and \t for these. */
void text_write(FILE *file, const char *text);

/* The same into memory that lives until the command ends. */
const char *text_shown(const char *text);

#endif
