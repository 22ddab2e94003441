/* SPDX-License-Identifier: MIT
 * Data for help, man page and completion. */
#ifndef RAPT_HELP_H
#define RAPT_HELP_H

#include "common/options.h"

struct help_verb {
    const char *name, *usage, *text;
    const struct option_row *rows;
};

/* Ends with a NULL name. */
extern const struct help_verb help_verbs[];
extern const char help_summary[], help_exit_text[];

#endif
