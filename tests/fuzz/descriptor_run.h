/* SPDX-License-Identifier: MIT
 * Runs calls and compares them with the reference, and all memory with what it held. */
#ifndef RAPT_TESTS_FUZZ_DESCRIPTOR_RUN_H
#define RAPT_TESTS_FUZZ_DESCRIPTOR_RUN_H

#include "descriptor_decode.h"

/* Whether to run a call, not only plan it: the reference is fast enough, no workspace too large. */
bool is_small(const rapt_attention_desc *desc);

/* The contents of a call's regions. */
struct snapshot {
    char *bytes[MOST_REGIONS];
};

struct snapshot snapshot_of(const struct fuzzed_call *call);
void snapshot_free(struct snapshot *snapshot);
void restore(const struct fuzzed_call *call, const struct snapshot *snapshot);

/* Ends the program if a region differs. */
void expect_memory(const struct fuzzed_call *call, const struct snapshot *expected, const char *what);

/* The status has a text if it is a refusal, and only then. */
void expect_text(rapt_status status, const rapt_message *message);

/* Runs a copy of the plan in a workspace of exactly the required size, at any address: whole, task by task, or by
 * joining threads. */
rapt_status run_plan(const rapt_plan *plan, uint8_t way);

/* Fails unless memory is what a reference makes of its earlier content; attention's is attend. */
typedef void fuzzed_reference(const void *desc);
void attend(const void *desc);
void expect_result(const struct fuzzed_call *call, fuzzed_reference *reference, const void *desc,
                   const struct snapshot *before);
void expect_reference(const struct fuzzed_call *call, const rapt_attention_desc *desc, const struct snapshot *before);

#endif
