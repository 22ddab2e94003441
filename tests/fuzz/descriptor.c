/* SPDX-License-Identifier: MIT
 * Attention calls of all kinds: a status with a text and no byte written, or the reference's bits; and nothing accessed
 * outside the memory that the call describes. */
#include <string.h>

#include "descriptor_run.h"

static bool has_data(const rapt_attention_desc *d) {
    return d->query.data || d->key.data || d->value.data || d->out.data || d->mask.data || d->bias.data ||
           d->keep_mask.data || d->lse.data || d->weights.data || d->initial_state.data || d->final_state.data;
}

static void check_result(struct fuzzed_call *call, const struct snapshot *before) {
    rapt_message message;
    rapt_plan plan;
    const rapt_status status = call->way & 2 ? rapt_attention(call->given, NULL, &message)
                               : rapt_plan_init(&plan, call->given, NULL) == RAPT_OK ? run_plan(&plan, call->way)
                                                                                     : RAPT_INVALID_VALUE;
    if (status == RAPT_NOT_BOUND && !has_data(&call->desc)) {
        expect_memory(call, before, "after a run without data");
        return;
    }
    if (status != RAPT_OK)
        fuzz_fail("planned, but then: %s", rapt_status_text(status));
    expect_reference(call, &call->desc, before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct input input = {data, data + bytes};
    struct fuzzed_call call;
    rapt_message message;
    rapt_plan plan;
    fuzzed_call_decode(&call, &input);
    struct snapshot before = snapshot_of(&call);
    memset(&message, 'x', sizeof message);
    const rapt_status status = rapt_plan_init(&plan, call.given, &message);
    expect_text(status, &message);
    if (status != RAPT_OK && rapt_plan_isa(&plan) != RAPT_ISA_AUTO)
        fuzz_fail("a plan after a refusal: %s", message.text);
    expect_memory(&call, &before, "after planning");
    if (status == RAPT_OK && is_small(&call.desc))
        check_result(&call, &before);
    *(status == RAPT_OK ? &fuzz_taken : &fuzz_refused) += 1;
    snapshot_free(&before);
    fuzzed_call_free(&call);
    return 0;
}
