/* SPDX-License-Identifier: MIT
 * The instruction sets of isa.def and their count; numbers are those of rapt_isa. */
#ifndef RAPT_ISA_H
#define RAPT_ISA_H

#include "rapt/rapt.h"

enum {
#define RAPT_ISA_ENTRY(name, table, number, architecture, features) RAPT_ISA_NUMBER_##name = (number),
#include "isa.def"
#undef RAPT_ISA_ENTRY
    RAPT_ISA_COUNT = 1 /* and RAPT_ISA_AUTO */
#define RAPT_ISA_ENTRY(name, table, number, architecture, features) +1
#include "isa.def"
#undef RAPT_ISA_ENTRY
};

#endif
