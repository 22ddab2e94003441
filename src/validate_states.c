/* SPDX-License-Identifier: MIT
 * Every refusal of merging states. docs/inputs.md is the same list for users. */
#include "validate_states.h"

#include <stdio.h>

#include "checked.h"
#include "isa.h"
#include "validate_parts.h"

static const int64_t max_size = (int64_t)1 << 40;

static rapt_status check_fields(const rapt_states_desc *desc, rapt_message *message) {
    if (desc->isa < 0 || desc->isa >= RAPT_ISA_COUNT)
        return rapt_refuse(message, RAPT_UNSUPPORTED_FLAG, "isa = %d is outside 0 ... %d", (int)desc->isa,
                           RAPT_ISA_COUNT - 1);
    if (desc->numerics < RAPT_NUMERICS_DEFAULT || desc->numerics > RAPT_NUMERICS_ORDER_3)
        return rapt_refuse(message, RAPT_UNSUPPORTED_FLAG, "numerics = %d is outside 0 ... %d", (int)desc->numerics,
                           RAPT_NUMERICS_ORDER_3);
    if (desc->reserved_zero)
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "reserved_zero = %d is not 0", (int)desc->reserved_zero);
    for (int i = 0; i < 3; i++)
        if (desc->reserved[i])
            return rapt_refuse(message, RAPT_UNUSED_FIELD, "reserved[%d] = %llu is not 0", i,
                               (unsigned long long)desc->reserved[i]);
    return RAPT_OK;
}

static rapt_status check_sizes(const rapt_states_desc *desc, rapt_message *message) {
    const struct {
        const char *name;
        int64_t size, least, most;
    } sizes[] = {{"batch", desc->batch, 0, max_size},
                 {"query_heads", desc->query_heads, 1, max_size},
                 {"query_length", desc->query_length, 0, max_size},
                 {"value_dim", desc->value_dim, 1, RAPT_MAX_HEAD_DIM}};
    int64_t rows;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size < sizes[i].least || sizes[i].size > sizes[i].most)
            return rapt_refuse(message, RAPT_INVALID_SHAPE, "%s = %lld is outside %lld ... %lld", sizes[i].name,
                               (long long)sizes[i].size, (long long)sizes[i].least, (long long)sizes[i].most);
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

/* Outputs, lists, and one of the states: there may be more of these than an overlap check takes at once. */
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
