/* SPDX-License-Identifier: MIT
 * Keys and values in pages. */
#ifndef RAPT_TOOL_PAGES_H
#define RAPT_TOOL_PAGES_H

#include "rapt/rapt.h"

/* desc has the pages of key and value as if each were a sequence. Makes them pages of sequences by the table at path.
 * Dies if it does not fit. */
void pages_add(rapt_attention_desc *desc, const char *path, int64_t pages);

/* Dies if a page that is read does not exist. Requires lengths. */
void pages_check(const rapt_attention_desc *desc, const char *path);

/* The tensor with pages as batches, and back. */
rapt_tensor pages_as_batches(rapt_tensor tensor);
rapt_tensor pages_of_batches(rapt_tensor tensor);

#endif
