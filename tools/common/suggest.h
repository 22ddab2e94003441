/* SPDX-License-Identifier: MIT
 * The probable intent of a misspelt word. */
#ifndef RAPT_SUGGEST_H
#define RAPT_SUGGEST_H

#include <stddef.h>

struct suggestion {
    const char *given, *nearest; /* nearest: NULL = none so far */
    int distance;
};

/* Takes name if it is nearer than all before: a few letters off, or cut short. */
void suggest_consider(struct suggestion *suggestion, const char *name);

/* "; did you mean PREFIX...?" into text, or "". */
enum { SUGGEST_TEXT = 96 };
const char *suggest_text(const struct suggestion *suggestion, const char *prefix, char text[SUGGEST_TEXT]);

#endif
