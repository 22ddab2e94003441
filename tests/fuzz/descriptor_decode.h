/* SPDX-License-Identifier: MIT
 * An attention call out of bytes: every field plausible or hostile, every
 * pointer to real memory of known extent. */
#ifndef RAPT_TESTS_FUZZ_DESCRIPTOR_DECODE_H
#define RAPT_TESTS_FUZZ_DESCRIPTOR_DECODE_H

#include "fuzz.h"
#include "rapt/rapt.h"

enum { MOST_REGIONS = 20 };

struct fuzzed_call {
    rapt_attention_desc desc; /* as the library has to read it: what the caller does not give is 0 */
    const rapt_attention_desc *given; /* struct_size bytes of it, and no more, as the caller gives them */
    struct region regions[MOST_REGIONS]; /* all that the call points to, and `given` */
    int region_count;
    uint8_t way; /* how to run it */
};

void fuzzed_call_decode(struct fuzzed_call *call, struct input *input);
void fuzzed_call_free(struct fuzzed_call *call);

#endif
