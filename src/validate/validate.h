/* SPDX-License-Identifier: MIT
 * Refusals. */
#ifndef RAPT_VALIDATE_H
#define RAPT_VALIDATE_H

#include "rapt/rapt.h"

/* Every refusal of a complete descriptor (describe.h). ASSERT a descriptor with RAPT_OK is safe to plan and run.
 * message may be NULL. Not inlined: fpenv.h. */
__attribute__((noinline)) rapt_status rapt_validate(const rapt_attention_desc *desc, rapt_message *message);

/* The checks that depend on pointers, for a planned descriptor that is given others. */
__attribute__((noinline)) rapt_status rapt_validate_binding(const rapt_attention_desc *desc, rapt_message *message);

/* Whether an array of reserved words is 0. */
rapt_status rapt_check_reserved(const char *name, const uint64_t *words, int count, rapt_message *message);

/* Writes message (if any) and returns status, so that refusals are one line. */
rapt_status rapt_refuse(rapt_message *message, rapt_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

#endif
