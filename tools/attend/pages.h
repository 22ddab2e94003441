/* SPDX-License-Identifier: MIT
 * Keys and values in pages. */
#ifndef RAPT_TOOL_PAGES_H
#define RAPT_TOOL_PAGES_H

#include "rapt/rapt.h"

/* desc has the pages of key and value as if each were a sequence. Makes them pages of sequences by the table at path.
 * Dies where that does not fit. */
void pages_add(rapt_attention_desc *desc, const char *path, int64_t pages);

/* Dies where a page that is read is not there. After lengths are known. */
void pages_check(const rapt_attention_desc *desc, const char *path);

/* The tensor with each page as a batch, and back. */
rapt_tensor pages_as_batches(rapt_tensor tensor);
rapt_tensor pages_of_batches(rapt_tensor tensor);

#endif
