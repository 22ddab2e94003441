/* SPDX-License-Identifier: MIT
 * Refusals of merging states. */
#ifndef RAPT_VALIDATE_STATES_H
#define RAPT_VALIDATE_STATES_H

#include "rapt/states.h"

/* Every refusal of a complete descriptor (describe.h). ASSERT a descriptor with RAPT_OK is safe to compute with.
 * message may be NULL. Not inlined: fpenv.h. */
__attribute__((noinline)) rapt_status rapt_validate_states(const rapt_states_desc *desc, rapt_message *message);

#endif
