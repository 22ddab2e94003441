/* SPDX-License-Identifier: MIT
 * Refusals of what a complete descriptor says (describe.h). */
#ifndef RAPT_VALIDATE_H
#define RAPT_VALIDATE_H

#include "rapt/rapt.h"

/* Every one of attention. ASSERT a descriptor with RAPT_OK is safe to plan and run. message may be NULL. Not
 * inlined: fpenv.h. */
__attribute__((noinline)) rapt_status rapt_validate(const rapt_attention_desc *desc, rapt_message *message);

/* The checks that depend on pointers, for a planned descriptor that is given others. */
__attribute__((noinline)) rapt_status rapt_validate_binding(const rapt_attention_desc *desc, rapt_message *message);

#endif
