/* SPDX-License-Identifier: MIT
 * --tree and --key-blocks in a descriptor. */
#ifndef RAPT_SELECTION_H
#define RAPT_SELECTION_H

#include "attend/options.h"
#include "rapt/rapt.h"

/* Requires sizes. Dies, naming the file, if an array does not fit them. */
void selection_add(rapt_attention_desc *desc, const struct attend_options *options);

#endif
