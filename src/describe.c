/* SPDX-License-Identifier: MIT
 * Reads structs that begin with struct_size, of older and newer callers. */
#include "describe.h"

#include <stddef.h>
#include <string.h>

#include "internal.h"
#include "refuse.h"

struct struct_sizes {
    const char *name; /* before struct_size in messages */
    size_t least;     /* bytes that every release's struct has */
    size_t known;
};

enum { MOST_BYTES = 4096 }; /* a larger struct_size is garbage and is not read */

/* Unknown fields must be 0, so that this library may ignore them. */
static rapt_status check_tail(const struct struct_sizes *sizes, const unsigned char *from, size_t bytes,
                              rapt_message *message) {
    for (size_t i = sizes->known; i < bytes; i++)
        if (from[i])
            return rapt_refuse(message, RAPT_UNSUPPORTED_VERSION,
                               "%sstruct_size = %zu, this library knows %zu, and byte %zu beyond them is not 0",
                               sizes->name, bytes, sizes->known, i);
    return RAPT_OK;
}

static rapt_status copy(const struct struct_sizes *sizes, const void *from, void *into, rapt_message *message) {
    uint32_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    if (bytes < sizes->least || bytes > MOST_BYTES || bytes % 8)
        return rapt_refuse(message, RAPT_UNSUPPORTED_VERSION,
                           "%sstruct_size = %lu is not a multiple of 8 from %zu to %d", sizes->name,
                           (unsigned long)bytes, sizes->least, MOST_BYTES);
    const size_t common = bytes < sizes->known ? bytes : sizes->known;
    memmove(into, from, common); /* memcpy of a multiple of 8 bytes would be inlined, and slower */
    if (common < sizes->known)
        memset((char *)into + common, 0, sizes->known - common);
    const uint32_t known = (uint32_t)sizes->known;
    memcpy(into, &known, sizeof known);
    return check_tail(sizes, from, bytes, message);
}

static void clear_scale_strides(rapt_tensor *tensor, int64_t batch, int64_t heads, int64_t tokens) {
    if (tensor->scale_dtype == RAPT_NO_DTYPE)
        return; /* unused, and refused if set */
    if (batch == 1)
        tensor->scale_batch_stride_bytes = 0;
    if (heads == 1)
        tensor->scale_head_stride_bytes = 0;
    if (tokens == 1)
        tensor->scale_token_stride_bytes = 0;
}

static void clear_own_strides(rapt_tensor *tensor, int64_t batch, int64_t heads, int64_t tokens) {
    if (batch == 1)
        tensor->batch_stride_bytes = 0;
    if (heads == 1)
        tensor->head_stride_bytes = 0;
    if (tokens == 1)
        tensor->token_stride_bytes = 0;
}

void rapt_clear_strides(rapt_tensor *tensor, int64_t batch, int64_t heads, int64_t tokens) {
    clear_own_strides(tensor, batch, heads, tokens);
    clear_scale_strides(tensor, batch, heads, tokens);
}

static void clear_unused_strides(rapt_attention_desc *desc) {
    rapt_tensor *const of_queries[] = {&desc->query,     &desc->out, &desc->mask,    &desc->bias,
                                       &desc->keep_mask, &desc->lse, &desc->weights, &desc->initial_state,
                                       &desc->final_state};
    const struct rapt_extent queries = rapt_query_extent(desc);
    for (size_t i = 0; i < sizeof of_queries / sizeof *of_queries; i++)
        clear_own_strides(of_queries[i], queries.batch, desc->query_heads, queries.tokens); /* none may have scales */
    for (int side = 0; side < RAPT_SIDES; side++) {
        const struct rapt_extent extent = rapt_kv_extent(desc, side);
        rapt_tensor *tensor = side == RAPT_KEYS ? &desc->key : &desc->value;
        rapt_clear_strides(tensor, extent.batch, desc->kv_heads, extent.tokens);
        if (rapt_is_paged(rapt_pages_of(desc, side)))
            tensor->batch_stride_bytes = 0;
        if (rapt_is_paged(rapt_pages_of(desc, side)) && extent.batch == 1)
            tensor->page_stride_bytes = 0;
    }
}

void rapt_complete_list(rapt_index_list *list) {
    if (list->data && list->stride_bytes == 0)
        list->stride_bytes = list->index_bytes;
}

static void complete_lists(rapt_attention_desc *desc) {
    rapt_index_list *const lists[] = {
        &desc->query_lengths,       &desc->kv_lengths,          &desc->query_position,     &desc->key_position,
        &desc->query_offsets,       &desc->kv_offsets,          &desc->key_pages.entries,  &desc->key_pages.offsets,
        &desc->value_pages.entries, &desc->value_pages.offsets, &desc->tree_masks,         &desc->key_blocks.offsets,
        &desc->key_blocks.entries};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        rapt_complete_list(lists[i]);
}

/* Entries per row of a dense table. */
static void complete_pages(const rapt_attention_desc *desc, rapt_page_table *table) {
    if (table->kind != RAPT_PAGES_DENSE)
        return;
    if (desc->batch == 1)
        table->batch_stride_bytes = 0;
    if (table->entries.data && table->entries.count == 0 && table->page_tokens > 0 && desc->kv_length > 0)
        table->entries.count = rapt_quotient_up(desc->kv_length, table->page_tokens);
}

rapt_status rapt_describe(const rapt_attention_desc *desc, rapt_attention_desc *complete, rapt_message *message) {
    static const struct struct_sizes sizes = {"", offsetof(rapt_attention_desc, reserved), sizeof *desc};
    if (!desc)
        return rapt_refuse(message, RAPT_NULL_POINTER, "desc is NULL");
    const rapt_status status = copy(&sizes, desc, complete, message);
    if (status != RAPT_OK)
        return status;
    if (!(complete->features & RAPT_SCALE)) {
        if (complete->scale != 0)
            return rapt_refuse(message, RAPT_UNUSED_FIELD, "scale is set, but features lack RAPT_SCALE");
        complete->scale = 1.0f / __builtin_sqrtf((float)complete->head_dim);
    }
    if (complete->value_dim == 0)
        complete->value_dim = complete->head_dim;
    clear_unused_strides(complete);
    complete_lists(complete);
    complete_pages(complete, &complete->key_pages);
    complete_pages(complete, &complete->value_pages);
    return RAPT_OK;
}

rapt_status rapt_describe_options(const rapt_run_options *options, rapt_run_options *complete, rapt_message *message) {
    static const struct struct_sizes sizes = {"options.", offsetof(rapt_run_options, should_stop), sizeof *options};
    static const rapt_run_options defaults = RAPT_RUN_OPTIONS_INIT;
    const rapt_status status = copy(&sizes, options ? options : &defaults, complete, message);
    if (status != RAPT_OK)
        return status;
    if (complete->max_threads < 0)
        return rapt_refuse(message, RAPT_INVALID_VALUE, "options.max_threads = %d is negative",
                           (int)complete->max_threads);
    if (complete->flags & ~RAPT_RUN_FORK_SAFE)
        return rapt_refuse(message, RAPT_UNSUPPORTED_FLAG, "options.flags = 0x%llx has unknown bits",
                           (unsigned long long)complete->flags);
    return RAPT_CHECK_RESERVED("options.reserved", complete->reserved, message);
}

rapt_status rapt_describe_bindings(const rapt_bindings *bindings, rapt_bindings *complete, rapt_message *message) {
    static const struct struct_sizes sizes = {"bindings.", offsetof(rapt_bindings, reserved), sizeof *bindings};
    if (!bindings)
        return rapt_refuse(message, RAPT_NULL_POINTER, "bindings is NULL");
    rapt_status status = copy(&sizes, bindings, complete, message);
    if (status == RAPT_OK)
        status = rapt_check_reserved_zero("bindings.", complete->reserved_zero, message);
    return status == RAPT_OK ? RAPT_CHECK_RESERVED("bindings.reserved", complete->reserved, message) : status;
}

rapt_status rapt_describe_copy(size_t least, size_t known, const void *from, void *into, rapt_message *message) {
    const struct struct_sizes sizes = {"", least, known};
    return copy(&sizes, from, into, message);
}

rapt_status rapt_describe_states(const rapt_states_desc *desc, rapt_states_desc *complete,
                                 rapt_tensor states[RAPT_MOST_STATES], rapt_message *message) {
    static const struct struct_sizes sizes = {"", offsetof(rapt_states_desc, numerics), sizeof *desc};
    if (!desc)
        return rapt_refuse(message, RAPT_NULL_POINTER, "desc is NULL");
    const rapt_status status = copy(&sizes, desc, complete, message);
    if (status != RAPT_OK)
        return status;
    if (complete->count < 1 || complete->count > RAPT_MOST_STATES)
        return rapt_refuse(message, RAPT_INVALID_VALUE, "count = %lld is outside 1 ... %d", (long long)complete->count,
                           RAPT_MOST_STATES);
    if (!complete->states)
        return rapt_refuse(message, RAPT_NULL_POINTER, "states is NULL");
    rapt_tensor *const outputs[] = {&complete->merged, &complete->out, &complete->lse};
    memcpy(states, complete->states, (size_t)complete->count * sizeof *states);
    complete->states = states;
    for (int64_t i = 0; i < complete->count; i++)
        rapt_clear_strides(&states[i], complete->batch, complete->query_heads, complete->query_length);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        rapt_clear_strides(outputs[i], complete->batch, complete->query_heads, complete->query_length);
    rapt_complete_list(&complete->query_lengths);
    return RAPT_OK;
}
