/* SPDX-License-Identifier: MIT
 * Refusals: a status, and a message that names the field and its value. Every stage may refuse. */
#ifndef RAPT_REFUSE_H
#define RAPT_REFUSE_H

#include "rapt/rapt.h"

/* Writes message (if any) and returns status, so that refusals are one line. */
rapt_status rapt_refuse(rapt_message *message, rapt_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* The status of a run, with its general text where it is an error. */
rapt_status rapt_refuse_run(rapt_message *message, rapt_status status);

/* Empties message, if there is one. */
void rapt_clear_message(rapt_message *message);

/* Whether an array of reserved words is 0. The length comes from its type: new fields take some of the words. */
#define RAPT_CHECK_RESERVED(name, words, message)                                     \
    rapt_check_reserved(name, words, (int)(sizeof(words) / sizeof *(words)), message)
rapt_status rapt_check_reserved(const char *name, const uint64_t *words, int count, rapt_message *message);

/* Whether a struct's field reserved_zero is; struct_name: with a final dot, or empty. */
rapt_status rapt_check_reserved_zero(const char *struct_name, int32_t value, rapt_message *message);

#endif
