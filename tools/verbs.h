/* SPDX-License-Identifier: MIT
 * The command's verbs; argv[0] is the verb, the result the exit status. */
#ifndef RAPT_VERBS_H
#define RAPT_VERBS_H

int verb_attend(int argc, char **argv);
int verb_bench(int argc, char **argv);
int verb_heatmap(int argc, char **argv);
int verb_layer(int argc, char **argv);
int verb_info(int argc, char **argv);
int verb_help(int argc, char **argv);
int verb_compare(int argc, char **argv);
int verb_completion(int argc, char **argv);
int verb_man(int argc, char **argv); /* the man page, for the build */

/* Prints help on "attend", "layer", "layer self" ..., or, on "rapt", on all, and exits. */
_Noreturn void help_exit(const char *topic);

/* Prints help on all to standard error, as an error. */
_Noreturn void help_verb_missing(void);

#endif
