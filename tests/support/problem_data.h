/* SPDX-License-Identifier: MIT
 * What the arrays of a problem hold. */
#ifndef RAPT_TESTS_PROBLEM_DATA_H
#define RAPT_TESTS_PROBLEM_DATA_H

#include "support/problem.h"

/* What outputs hold before a run. */
enum { CANARY = 0xa5 };

/* Array names, and these two, number the sequences of a seed; hashes in tests/calls/hash.c depend on it. */
enum { LISTS_SEQUENCE = 9, NUMBERS_SEQUENCE = 10 };
struct random number_sequence(const struct problem_call *call, int number);

/* Sizes of an array in the call, the innermost in blocks; in memory some are 1, where draw_shape broadcasts. */
void logical_counts(const struct problem_call *call, enum array_name name, int64_t count[4]);

/* The sequence that draws an array's shape, then its elements. All lists of integers share one, and are drawn in the
 * order of their names. */
struct random random_of(const struct problem_call *call, enum array_name name);

/* Sets count and element_bytes. */
void draw_shape(struct problem_array *array, const struct problem_call *call, enum array_name name,
                struct random *random);

/* Fills an array without gaps. */
void draw_array(const struct problem_array *array, const struct problem_call *call, enum array_name name,
                struct random *random);

/* problem_select.c: sizes and strides of the lists of key blocks, and tree_tokens; 0 if the call has none. */
rapt_block_list drawn_blocks(const struct problem_call *call);
int64_t drawn_tree_tokens(const struct problem_call *call);

/* Integers in a list; those of trees and key blocks. */
int64_t count_indices(const struct problem_call *call, enum array_name name);
void draw_selection(const struct problem_array *array, const struct problem_call *call, enum array_name name,
                    struct random *random);

/* Writes entry i of a list. */
void set_index(const struct problem_array *array, int64_t i, int64_t index);

/* problem_numbers.c: the call without conflicting features; features and numbers of the descriptor. */
struct problem_call consistent_call(struct problem_call call);
void draw_numbers(rapt_attention_desc *desc, const struct problem_call *call);

/* problem_places.c: packed and paged layouts. */
bool has_places(const struct problem_layout *layout, enum array_name name);
void draw_tables(struct problem *problem, const struct problem *plain, const struct problem_layout *layout);
void free_tables(struct problem *problem);
/* Sizes of such an array in memory; then, with its strides set, the places of its tokens. */
void shape_in_memory(const struct problem *problem, enum array_name name, int64_t count[4]);
void set_places(const struct problem *problem, const struct problem *plain, struct problem_array *array,
                enum array_name name);
/* Trees of packed queries. */
void copy_packed_trees(const struct problem *plain, struct problem *problem);
void describe_tables(struct problem *problem, const struct problem_layout *layout);

/* problem_unused.c: whether no result depends on that element; `at` counts as in memory. */
bool is_unused(const struct problem *plain, enum array_name name, const int64_t at[4]);

#endif
