/* SPDX-License-Identifier: MIT
 * What --tree and --key-blocks say, as a descriptor has it. */
#ifndef RAPT_SELECTION_H
#define RAPT_SELECTION_H

#include "attend/options.h"
#include "rapt/rapt.h"

/* After sizes are known. Dies, naming the file, where an array does not fit them. */
void selection_add(rapt_attention_desc *desc, const struct attend_options *options);

#endif
