/* SPDX-License-Identifier: MIT
 * Every refusal, in the order of the checks in rapt_validate.
 * docs/inputs.md is the same list for users. */
#include "validate/parts.h"

#include <string.h>

#include "checked.h"
#include "numerics.h"

bool rapt_finite_log2e(float x) { return __builtin_isfinite(x) && __builtin_isfinite(x * RAPT_LOG2E); }

static rapt_status check_flags(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const uint64_t known = RAPT_SCALE | RAPT_CAUSAL | RAPT_WINDOW | RAPT_MASK_FILL | RAPT_ALIBI_STANDARD;
    const uint64_t unknown = desc->features & ~known;
    if (unknown)
        return rapt_refuse(v->message, RAPT_UNSUPPORTED_FLAG, "features = 0x%llx has unknown bits 0x%llx",
                           (unsigned long long)desc->features, (unsigned long long)unknown);
    rapt_status status = rapt_check_numerics_number(desc, v->message);
    if (status == RAPT_OK)
        status = rapt_check_isa(desc->isa, v->message);
    if (status == RAPT_OK)
        status = rapt_check_enum("query_origin", desc->query_origin, RAPT_ORIGIN_GIVEN, v->message);
    if (status == RAPT_OK)
        status = rapt_check_enum("weights_kind", desc->weights_kind, RAPT_WEIGHTS_SOFTMAX, v->message);
    return status;
}

static rapt_status check_reserved_words(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const rapt_status status = rapt_check_reserved_zero("", desc->reserved_zero, v->message);
    return status == RAPT_OK ? RAPT_CHECK_RESERVED("reserved", desc->reserved, v->message) : status;
}

static rapt_status check_sizes(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const struct rapt_size sizes[] = {
        {"batch", desc->batch, 0, RAPT_MAX_SIZE},
        {"query_heads", desc->query_heads, 1, RAPT_MAX_SIZE},
        {"kv_heads", desc->kv_heads, 1, RAPT_MAX_SIZE},
        {"query_length", desc->query_length, 0, RAPT_MAX_SIZE},
        {"kv_length", desc->kv_length, 0, RAPT_MAX_SIZE},
        {"query_tokens", desc->query_tokens, 0, RAPT_MAX_SIZE},
        {"kv_tokens", desc->kv_tokens, 0, RAPT_MAX_SIZE},
        {"head_dim", desc->head_dim, 1, RAPT_MAX_HEAD_DIM},
        {"value_dim", desc->value_dim, 1, RAPT_MAX_HEAD_DIM},
    };
    const rapt_status status = rapt_check_sizes(sizes, sizeof sizes / sizeof *sizes, v->message);
    if (status == RAPT_OK && desc->query_heads % desc->kv_heads)
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE, "query_heads = %lld is not a multiple of kv_heads = %lld",
                           (long long)desc->query_heads, (long long)desc->kv_heads);
    return status;
}

/* Makes products of sizes safe: rows, scores, and bytes of contiguous
 * tensors with the largest head_dim fit int64. 0 counts as 1. */
static rapt_status check_products(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const int64_t batch = desc->batch + !desc->batch;
    const int64_t queries = desc->query_length + !desc->query_length;
    const int64_t keys = desc->kv_length + !desc->kv_length;
    const int64_t row_bytes = 4 * RAPT_MAX_HEAD_DIM;
    int64_t heads, rows, scores, bytes;
    if (!rapt_mul_fits(batch, desc->query_heads, &heads) || !rapt_mul_fits(heads, queries, &rows) ||
        !rapt_mul_fits(rows, keys, &scores) || !rapt_mul_fits(scores, 4, &bytes) ||
        !rapt_mul_fits(rows, row_bytes, &bytes) || !rapt_mul_fits(heads, keys, &bytes) ||
        !rapt_mul_fits(bytes, row_bytes, &bytes))
        return rapt_refuse(v->message, RAPT_SIZE_OVERFLOW,
                           "batch = %lld, query_heads = %lld, query_length = %lld, kv_length = %lld: "
                           "their product overflows",
                           (long long)desc->batch, (long long)desc->query_heads,
                           (long long)desc->query_length, (long long)desc->kv_length);
    return RAPT_OK;
}

/* Refuses a field whose feature is off. */
static rapt_status refuse_unused(struct rapt_validation *v, const char *name, const char *user) {
    return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s is set, but %s", name, user);
}

static rapt_status check_unused_fields(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const uint64_t features = desc->features;
    if (!(features & RAPT_MASK_FILL) && desc->mask_fill != 0)
        return refuse_unused(v, "mask_fill", "features lack RAPT_MASK_FILL");
    if ((features & RAPT_MASK_FILL) && rapt_absent(&desc->mask))
        return refuse_unused(v, "RAPT_MASK_FILL", "mask is absent");
    if (!(features & RAPT_WINDOW) && desc->window_left)
        return refuse_unused(v, "window_left", "features lack RAPT_WINDOW");
    if (!(features & RAPT_WINDOW) && desc->window_right)
        return refuse_unused(v, "window_right", "features lack RAPT_WINDOW");
    if (desc->keep_scale != 0 && rapt_absent(&desc->keep_mask))
        return refuse_unused(v, "keep_scale", "keep_mask is absent");
    if (desc->bias_head_factor && rapt_absent(&desc->bias))
        return refuse_unused(v, "bias_head_factor", "bias is absent");
    if (desc->alibi_slopes && (features & RAPT_ALIBI_STANDARD))
        return refuse_unused(v, "alibi_slopes", "features have RAPT_ALIBI_STANDARD");
    if (!rapt_absent(&desc->weights) && desc->weights_kind == RAPT_WEIGHTS_NONE)
        return refuse_unused(v, "weights", "weights_kind = 0");
    if (desc->sinks && rapt_absent(&desc->out) && !rapt_absent(&desc->final_state))
        return refuse_unused(v, "sinks", "out is absent, and no sink is part of a state");
    if (desc->query_position.data && desc->query_origin != RAPT_ORIGIN_GIVEN)
        return refuse_unused(v, "query_position", "query_origin is not RAPT_ORIGIN_GIVEN");
    return RAPT_OK;
}

static rapt_status check_order(struct rapt_validation *v) { return rapt_check_numerics_types(v->desc, v->message); }

/* Lengths come from one list. */
static rapt_status check_packing(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    if (desc->query_tokens && !desc->query_offsets.data)
        return refuse_unused(v, "query_tokens", "query_offsets is absent");
    if (desc->kv_tokens && !desc->kv_offsets.data)
        return refuse_unused(v, "kv_tokens", "kv_offsets is absent");
    if (desc->query_lengths.data && desc->query_offsets.data)
        return refuse_unused(v, "query_lengths", "query_offsets has the lengths");
    if (desc->kv_lengths.data && desc->kv_offsets.data)
        return refuse_unused(v, "kv_lengths", "kv_offsets has the lengths");
    return RAPT_OK;
}

static rapt_status check_missing_fields(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const bool no_weights = v->memory == RAPT_MEMORY_LATER ? rapt_absent(&desc->weights) : !desc->weights.data;
    if (desc->weights_kind != RAPT_WEIGHTS_NONE && no_weights && !rapt_no_rows(desc) && desc->kv_length)
        return rapt_refuse(v->message, RAPT_NULL_POINTER, "weights.%s, but weights_kind = %d",
                           v->memory == RAPT_MEMORY_LATER ? "dtype = 0" : "data is NULL", (int)desc->weights_kind);
    if (desc->query_origin == RAPT_ORIGIN_GIVEN && !desc->query_position.data && desc->batch)
        return rapt_refuse(v->message, RAPT_NULL_POINTER,
                           "query_position.data is NULL, but query_origin = %d (RAPT_ORIGIN_GIVEN)",
                           (int)desc->query_origin);
    return RAPT_OK;
}

static rapt_status refuse_number(struct rapt_validation *v, const char *name, float value, const char *why) {
    return rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s = %g %s", name, (double)value, why);
}

static rapt_status check_numbers(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const float scale = desc->scale, cap = desc->softcap;
    const char *must_be_finite = "must be finite, also after multiplication by log2(e)";
    if (!rapt_finite_log2e(scale))
        return refuse_number(v, "scale", scale, must_be_finite);
    if (!rapt_finite_log2e(cap) || cap < 0)
        return refuse_number(v, "softcap", cap,
                             "must be 0 or more and finite, also after multiplication by log2(e)");
    if (cap > 0 && !__builtin_isfinite(scale / cap))
        return refuse_number(v, "softcap", cap, "is so small that scale / softcap is not finite");
    if (!rapt_finite_log2e(desc->mask_fill))
        return refuse_number(v, "mask_fill", desc->mask_fill, must_be_finite);
    if (!__builtin_isfinite(desc->keep_scale))
        return refuse_number(v, "keep_scale", desc->keep_scale, "is not finite");
    return RAPT_OK;
}

static rapt_status check_window(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    if (desc->window_left < -1)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "window_left = %lld is below -1 (open)",
                           (long long)desc->window_left);
    if (desc->window_right < -1)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "window_right = %lld is below -1 (open)",
                           (long long)desc->window_right);
    return RAPT_OK;
}

static rapt_status check_query_origin(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const uint64_t counting = RAPT_CAUSAL | RAPT_WINDOW | RAPT_ALIBI_STANDARD;
    const bool counts = (desc->features & counting) || desc->alibi_slopes;
    const bool listed = desc->query_lengths.data || desc->kv_lengths.data || desc->key_position.data ||
                        desc->query_offsets.data || desc->kv_offsets.data;
    if (desc->query_origin != RAPT_ORIGIN_UNSTATED || !counts)
        return RAPT_OK;
    if (desc->query_length == desc->kv_length && !listed)
        return RAPT_OK;
    return rapt_refuse(v->message, RAPT_UNSTATED_POSITION,
                       "query_origin is unstated: causal, window and ALiBi require it with query_length = %lld, "
                       "kv_length = %lld%s",
                       (long long)desc->query_length, (long long)desc->kv_length,
                       listed ? " and with lists of lengths, offsets or key_position" : "");
}

/* Most calls have no pages, selections of keys or lists per sequence, so checks of these are skipped. */
struct check {
    rapt_status (*run)(struct rapt_validation *);
    bool of_lists;
};

static bool has_lists(const rapt_attention_desc *desc) {
    const size_t lists = offsetof(rapt_attention_desc, bias_head_factor) - offsetof(rapt_attention_desc, query_lengths);
    return desc->tree_tokens || !rapt_is_zero(&desc->query_lengths, lists) ||
           !rapt_is_zero(&desc->key_pages, sizeof desc->key_pages) ||
           !rapt_is_zero(&desc->value_pages, sizeof desc->value_pages) ||
           !rapt_is_zero(&desc->key_blocks, sizeof desc->key_blocks);
}

static rapt_status run_checks(struct rapt_validation *v, const struct check *checks, size_t count) {
    const bool lists = has_lists(v->desc);
    for (size_t i = 0; i < count; i++) {
        const rapt_status status = lists || !checks[i].of_lists ? checks[i].run(v) : RAPT_OK;
        if (status != RAPT_OK)
            return status;
    }
    return RAPT_OK;
}

static bool has_data(const rapt_attention_desc *desc) {
    return desc->query.data || desc->key.data || desc->value.data || desc->out.data || desc->mask.data ||
           desc->bias.data || desc->keep_mask.data || desc->lse.data || desc->weights.data ||
           desc->initial_state.data || desc->final_state.data;
}

static rapt_status validate(const rapt_attention_desc *desc, enum rapt_memory memory, const struct check *checks,
                            size_t count, rapt_message *message) {
    struct rapt_validation v;
    v.desc = desc;
    v.message = message;
    v.memory = memory;
    v.footprint_count = v.scale_name_count = 0;
    return run_checks(&v, checks, count);
}

rapt_status rapt_validate(const rapt_attention_desc *desc, rapt_message *message) {
    static const struct check checks[] = {
        {check_flags, false},           {check_reserved_words, false},  {rapt_check_page_tables, true},
        {check_sizes, false},           {check_products, false},        {check_packing, false},
        {rapt_check_tensors, false},    {check_order, false},           {check_unused_fields, false},
        {check_missing_fields, false},  {check_numbers, false},         {check_window, false},
        {rapt_check_index_lists, true}, {rapt_check_page_lists, true},  {rapt_check_selection, true},
        {rapt_check_head_lists, false}, {rapt_check_overlaps, false},   {check_query_origin, false},
    };
    const enum rapt_memory memory = has_data(desc) || rapt_no_rows(desc) ? RAPT_MEMORY_GIVEN : RAPT_MEMORY_LATER;
    return validate(desc, memory, checks, sizeof checks / sizeof *checks, message);
}

rapt_status rapt_validate_binding(const rapt_attention_desc *desc, rapt_message *message) {
    static const struct check checks[] = {{rapt_check_tensors, false},   {rapt_check_index_lists, true},
                                          {rapt_check_page_lists, true}, {rapt_check_selection, true},
                                          {rapt_check_head_lists, false}, {rapt_check_overlaps, false}};
    return validate(desc, RAPT_MEMORY_BINDING, checks, sizeof checks / sizeof *checks, message);
}
