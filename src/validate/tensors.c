/* SPDX-License-Identifier: MIT
 * The tensors of calls: which sizes they have, and what they may hold. */
#include <stddef.h>

#include "format.h"
#include "validate/tensor.h"

/* The tensors of a call: which sizes they have, and which rows. */
enum { OF_QUERIES, OF_KEYS, OF_VALUES };
enum { HEAD_DIM, VALUE_DIM, KEYS, ONE, STATE };
static const struct call_tensor {
    const char *name;
    size_t offset;
    int sizes, row;
    int32_t uses;
    int role;
} call_tensors[] = {
#define TENSOR(name) #name, offsetof(rapt_attention_desc, name)
    {TENSOR(query), OF_QUERIES, HEAD_DIM, RAPT_USE_ENDS, RAPT_ROLE_INPUT},
    {TENSOR(key), OF_KEYS, HEAD_DIM, RAPT_USE_KEY_VALUE, RAPT_ROLE_INPUT},
    {TENSOR(value), OF_VALUES, VALUE_DIM, RAPT_USE_KEY_VALUE, RAPT_ROLE_INPUT},
    {TENSOR(out), OF_QUERIES, VALUE_DIM, RAPT_USE_ENDS, RAPT_ROLE_OUTPUT},
    {TENSOR(mask), OF_QUERIES, KEYS, RAPT_USE_MASK, RAPT_ROLE_OPTIONAL},
    {TENSOR(bias), OF_QUERIES, KEYS, RAPT_USE_ENDS, RAPT_ROLE_OPTIONAL},
    {TENSOR(keep_mask), OF_QUERIES, KEYS, RAPT_USE_MASK, RAPT_ROLE_OPTIONAL},
    {TENSOR(lse), OF_QUERIES, ONE, RAPT_USE_FLOATS, RAPT_ROLE_OPTIONAL_OUTPUT},
    {TENSOR(weights), OF_QUERIES, KEYS, RAPT_USE_FLOATS, RAPT_ROLE_OPTIONAL_OUTPUT},
    {TENSOR(initial_state), OF_QUERIES, STATE, RAPT_USE_STATES, RAPT_ROLE_OPTIONAL | RAPT_ROLE_IN_PLACE},
    {TENSOR(final_state), OF_QUERIES, STATE, RAPT_USE_STATES, RAPT_ROLE_OPTIONAL_OUTPUT | RAPT_ROLE_IN_PLACE},
#undef TENSOR
};

rapt_status rapt_check_tensors(struct rapt_validation *v) {
    const rapt_attention_desc *d = v->desc;
    const struct rapt_extent of_queries = rapt_query_extent(d);
    const struct rapt_extent of_k = rapt_kv_extent(d, RAPT_KEYS), of_v = rapt_kv_extent(d, RAPT_VALUES);
    const int64_t sizes[][3] = {[OF_QUERIES] = {of_queries.batch, d->query_heads, of_queries.tokens},
                                [OF_KEYS] = {of_k.batch, d->kv_heads, of_k.tokens},
                                [OF_VALUES] = {of_v.batch, d->kv_heads, of_v.tokens}};
    const bool paged[] = {false, rapt_is_paged(&d->key_pages), rapt_is_paged(&d->value_pages)};
    const int64_t rows[] = {d->head_dim, d->value_dim, d->kv_length, 1, d->value_dim + 2};
    for (size_t i = 0; i < sizeof call_tensors / sizeof *call_tensors; i++) {
        const struct call_tensor *is = &call_tensors[i];
        const rapt_tensor *tensor = (const rapt_tensor *)(const void *)((const char *)d + is->offset);
        if ((is->role & RAPT_ROLE_OPTIONAL) && rapt_is_zero(tensor, sizeof *tensor))
            continue;
        const bool may_lack = tensor == &d->out && !rapt_absent(&d->final_state);
        const struct rapt_tensor_rule rule = {.name = is->name,
                                         .tensor = tensor,
                                         .size = sizes[is->sizes],
                                         .row = rows[is->row],
                                         .uses = is->uses,
                                         .role = may_lack ? RAPT_ROLE_OPTIONAL_OUTPUT : is->role,
                                         .paged = paged[is->sizes]};
        const rapt_status status = rapt_check_tensor(v, &rule);
        if (status != RAPT_OK)
            return status;
    }
    return RAPT_OK;
}

rapt_status rapt_check_merging(struct rapt_validation *v, const rapt_states_desc *d, const char *name,
                               const rapt_tensor *state) {
    const int64_t size[] = {d->batch, d->query_heads, d->query_length}, floats = d->value_dim + 2;
    const struct rapt_tensor_rule rules[] = {
        {name, state, size, floats, RAPT_USE_STATES, RAPT_ROLE_IN_PLACE, false},
        {"merged", &d->merged, size, floats, RAPT_USE_STATES, RAPT_ROLE_OPTIONAL_OUTPUT | RAPT_ROLE_IN_PLACE, false},
        {"out", &d->out, size, d->value_dim, RAPT_USE_ENDS, RAPT_ROLE_OPTIONAL_OUTPUT, false},
        {"lse", &d->lse, size, 1, RAPT_USE_STATES, RAPT_ROLE_OPTIONAL_OUTPUT, false},
    };
    rapt_status status = RAPT_OK;
    for (size_t i = 0; status == RAPT_OK && i < sizeof rules / sizeof *rules; i++)
        status = rapt_check_tensor(v, &rules[i]);
    return status;
}
