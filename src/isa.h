/* SPDX-License-Identifier: MIT
 * How many instruction sets isa.def has; numbers are those of rapt_isa. */
#ifndef RAPT_ISA_H
#define RAPT_ISA_H

#include "rapt/rapt.h"

enum {
    RAPT_ISA_COUNT = 1 /* and RAPT_ISA_AUTO */
#define RAPT_ISA_ENTRY(name, NAME, number, architecture, features) +1
#include "isa.def"
#undef RAPT_ISA_ENTRY
};

#endif
