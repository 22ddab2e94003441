/* SPDX-License-Identifier: MIT
 * Every refusal of merging states. docs/inputs.md is the same list for users. */
#include "validate/states.h"

#include <stdio.h>

#include "checked.h"
#include "validate/parts.h"

static rapt_status check_fields(const rapt_states_desc *desc, rapt_message *message) {
    rapt_status status = rapt_check_isa(desc->isa, message);
    if (status == RAPT_OK)
        status = rapt_check_enum("numerics", desc->numerics, RAPT_NUMERICS_ORDER_3, message);
    if (status == RAPT_OK)
        status = rapt_check_reserved_zero("", desc->reserved_zero, message);
    return status == RAPT_OK ? RAPT_CHECK_RESERVED("reserved", desc->reserved, message) : status;
}

static rapt_status check_sizes(const rapt_states_desc *desc, rapt_message *message) {
    const struct rapt_size sizes[] = {{"batch", desc->batch, 0, RAPT_MAX_SIZE},
                                      {"query_heads", desc->query_heads, 1, RAPT_MAX_SIZE},
                                      {"query_length", desc->query_length, 0, RAPT_MAX_SIZE},
                                      {"value_dim", desc->value_dim, 1, RAPT_MAX_HEAD_DIM}};
    int64_t rows;
    const rapt_status status = rapt_check_sizes(sizes, sizeof sizes / sizeof *sizes, message);
    if (status != RAPT_OK)
        return status;
    if (!rapt_mul_fits(desc->batch, desc->query_heads, &rows) || !rapt_mul_fits(rows, desc->query_length, &rows) ||
        !rapt_mul_fits(rows, 4 * (2 + RAPT_MAX_HEAD_DIM), &rows))
        return rapt_refuse(message, RAPT_SIZE_OVERFLOW,
                           "batch = %lld, query_heads = %lld, query_length = %lld: their product overflows",
                           (long long)desc->batch, (long long)desc->query_heads, (long long)desc->query_length);
    return RAPT_OK;
}

static rapt_status check_outputs(const rapt_states_desc *desc, rapt_message *message) {
    if (rapt_absent(&desc->merged) && rapt_absent(&desc->out) && rapt_absent(&desc->lse))
        return rapt_refuse(message, RAPT_NULL_POINTER, "merged.data, out.data and lse.data are NULL");
    if (desc->sinks && rapt_absent(&desc->out))
        return rapt_refuse(message, RAPT_UNUSED_FIELD,
                           "sinks is set, but out is absent, and no sink is part of a state");
    return RAPT_OK;
}

/* Outputs, lists and one state: an overlap check cannot take all states at once. */
static rapt_status check_memory(const rapt_states_desc *desc, const rapt_attention_desc *lists, int64_t number,
                                rapt_message *message) {
    struct rapt_validation v = {.desc = lists, .message = message, .memory = RAPT_MEMORY_GIVEN};
    char name[32];
    snprintf(name, sizeof name, "states[%d]", (int)number);
    rapt_status status = rapt_check_merging(&v, desc, name, &desc->states[number]);
    if (status == RAPT_OK)
        status = rapt_check_index_lists(&v);
    if (status == RAPT_OK)
        status = rapt_check_head_lists(&v);
    return status == RAPT_OK ? rapt_check_overlaps(&v) : status;
}

rapt_status rapt_validate_states(const rapt_states_desc *desc, rapt_message *message) {
    rapt_status status = check_fields(desc, message);
    if (status == RAPT_OK)
        status = check_sizes(desc, message);
    if (status == RAPT_OK)
        status = check_outputs(desc, message);
    const rapt_attention_desc lists = {.batch = desc->batch,
                                       .query_heads = desc->query_heads,
                                       .query_length = desc->query_length,
                                       .query_lengths = desc->query_lengths,
                                       .sinks = desc->sinks};
    for (int64_t i = 0; status == RAPT_OK && i < desc->count; i++)
        status = check_memory(desc, &lists, i, message);
    return status;
}
