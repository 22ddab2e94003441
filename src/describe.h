/* SPDX-License-Identifier: MIT
 * Complete copies of what callers pass in: reads structs of other releases and fills in defaults. */
#ifndef RAPT_DESCRIBE_H
#define RAPT_DESCRIBE_H

#include <stddef.h>

#include "rapt/cache.h"
#include "rapt/states.h"

/* Copies desc and fills in every default: value_dim, scale, 0 for strides of dimensions of size 1, strides of lists.
 * Sizes are not checked yet and may be absurd; message may be NULL. Not inlined: fpenv.h. */
__attribute__((noinline)) rapt_status rapt_describe(const rapt_attention_desc *desc, rapt_attention_desc *complete,
                                                    rapt_message *message);

/* options may be NULL. RAPT_OK promises valid options. */
rapt_status rapt_describe_options(const rapt_run_options *options, rapt_run_options *complete, rapt_message *message);

/* The same for merging states; copies what desc->states points to into states. */
rapt_status rapt_describe_states(const rapt_states_desc *desc, rapt_states_desc *complete,
                                 rapt_tensor states[RAPT_MOST_STATES], rapt_message *message);

/* The same for bindings; refuses reserved fields. */
rapt_status rapt_describe_bindings(const rapt_bindings *bindings, rapt_bindings *complete, rapt_message *message);

/* The same for any struct that begins with struct_size and has `least` bytes in every release. name precedes
 * struct_size in messages. */
rapt_status rapt_describe_copy(size_t least, size_t known, const void *from, void *into, rapt_message *message);

/* Zeroes the strides of dimensions of size 1: they may hold anything, but enter addresses. */
void rapt_clear_strides(rapt_tensor *tensor, int64_t batch, int64_t heads, int64_t tokens);

/* Without a stated stride, entries are contiguous. */
void rapt_complete_list(rapt_index_list *list);

/* append/describe.c: complete copies. A rotation becomes an append to a cache with one row per token. */
__attribute__((noinline)) rapt_status rapt_describe_append(const rapt_append_desc *desc, rapt_append_desc *into,
                                                           rapt_message *message);
__attribute__((noinline)) rapt_status rapt_describe_rotate(const rapt_rotate_desc *desc, rapt_append_desc *into,
                                                           rapt_message *message);

#endif
