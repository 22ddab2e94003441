/* SPDX-License-Identifier: MIT
 *
 * Partial states of attention: merging and finishing them.
 *
 * A state is what rapt_attention_desc.final_state receives: for each row, [2 + value_dim] floats, m, l and o. Calls
 * with the same queries and different keys leave states that can be merged: calls on several machines, on a shared
 * prefix and on what comes after it, or on blocks of a cache in any order.
 *
 *     rapt_tensor parts[2] = {state_of_prefix, state_of_rest};
 *     rapt_states_desc desc = RAPT_STATES_DESC_INIT;
 *     desc.batch = batch;  desc.query_heads = 8;  desc.query_length = 1;  desc.value_dim = 64;
 *     desc.states = parts;  desc.count = 2;
 *     desc.out = rapt_output_bhsd(out, batch, 8, 1, 64);
 *     rapt_message message;
 *     if (rapt_merge_states(&desc, NULL, &message) != RAPT_OK) puts(message.text);
 *
 * Merging folds the states in their order, as attention folds the chunks of its keys (docs/numerics.md, States). The
 * result has the same bits on every instruction set and for any number of threads. It is as accurate as one call with
 * all keys, but has that call's bits only if each state but the first is that of one chunk; a call that continues from
 * a state has them at every multiple of RAPT_STATE_KEYS.
 *
 * Structs grow as those of rapt.h do.
 */
#ifndef RAPT_STATES_H
#define RAPT_STATES_H

#include "rapt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most states per call; merge more in several calls. */
#define RAPT_MOST_STATES 64

/* All tensors are float32, but out may be float16 or bfloat16. At least one of merged, out and lse is given. */
typedef struct rapt_states_desc {
    uint32_t struct_size; /* sizeof(rapt_states_desc) */
    int32_t isa;          /* rapt_isa */
    int64_t batch;        /* >= 0 */
    int64_t query_heads;  /* >= 1 */
    int64_t query_length; /* tokens, >= 0 */
    int64_t value_dim;    /* 1 ... 1024 */

    const rapt_tensor *states; /* [count], each [batch, query_heads, query_length, 2 + value_dim] */
    int64_t count;             /* 1 ... RAPT_MOST_STATES; 1: finishes a state */
    rapt_tensor merged;        /* likewise, output; may be one of states, row for row */
    rapt_tensor out;           /* [batch, query_heads, query_length, value_dim], output */
    rapt_tensor lse;           /* [batch, query_heads, query_length], output: without the sink */

    rapt_index_list query_lengths; /* each 0 ... query_length: rows from there on are neither read nor written */
    const float *sinks;            /* [query_heads], with out: as in rapt_attention_desc */

    int32_t numerics;      /* rapt_numerics of the calls that left the states, not RAPT_NUMERICS_FASTEST; those of
                              orders 1 and 3 may be merged with each other */
    int32_t reserved_zero;
    uint64_t reserved[3];
} rapt_states_desc;

/* Everything off, struct_size filled in. */
#define RAPT_STATES_DESC_INIT RAPT_INIT(rapt_states_desc)

/* Merges states, finishes the rows, or both. options and message may be NULL. Allocates nothing; each thread that takes
 * part uses up to 56 KiB of stack. A refused call writes nothing; after RAPT_STOPPED and RAPT_PARALLEL_FOR_FAILED
 * outputs are undefined. A row with an invalid state (l negative, NaN, or above 0 and below 2^-126; m not an even
 * integer, in order 2 not finite) gives NaN. */
RAPT_API rapt_status rapt_merge_states(const rapt_states_desc *desc, const rapt_run_options *options,
                                       rapt_message *message);

#ifdef __cplusplus
}
#endif
#endif
