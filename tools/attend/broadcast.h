/* SPDX-License-Identifier: MIT
 * NumPy's broadcasting of a mask or bias to [batch, query_heads, query_length, kv_length]. */
#ifndef RAPT_BROADCAST_H
#define RAPT_BROADCAST_H

#include "files/npy.h"
#include "rapt/rapt.h"

/* Dies, naming both shapes, if array does not broadcast to the scores. shape, scores: [dims]; shape is the array's with
 * ones in front. axes: follows the shape of the scores in the message. */
void broadcast_check(const struct npy_array *array, const int64_t *shape, int dims, const int64_t *scores,
                     const char *axes);

/* array: bool or NPY_FLOATS. Dies, naming both shapes, if it does not broadcast. */
rapt_tensor broadcast_to_scores(struct npy_array array, const rapt_attention_desc *desc);

/* The dtype of an array of bool or NPY_FLOATS. */
int32_t dtype_of(const struct npy_array *array);

/* Integers, one per sequence or token. */
rapt_index_list list_of(const struct npy_array *array);

#endif
