/* SPDX-License-Identifier: MIT
 * What a misspelt word was probably meant to be. */
#ifndef RAPT_SUGGEST_H
#define RAPT_SUGGEST_H

#include <stddef.h>

struct suggestion {
    const char *given, *nearest; /* nearest: NULL = none so far */
    int distance;
};

/* Takes name where it is nearer to what was given than all before: few letters apart, or cut short. */
void suggest_consider(struct suggestion *suggestion, const char *name);

/* "; did you mean PREFIX...?" into text, or "". */
enum { SUGGEST_TEXT = 96 };
const char *suggest_text(const struct suggestion *suggestion, const char *prefix, char text[SUGGEST_TEXT]);

#endif
