/* SPDX-License-Identifier: MIT
 * What help, man page and completion are made of. */
#ifndef RAPT_HELP_H
#define RAPT_HELP_H

#include "common/options.h"

struct help_verb {
    const char *name, *usage, *text;
    const struct option_row *rows;
};

/* They end with one whose name is NULL. */
extern const struct help_verb help_verbs[];
extern const char help_summary[], help_exit_text[];

#endif
