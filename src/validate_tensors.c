/* SPDX-License-Identifier: MIT
 * Each tensor on its own: what it may hold and which bytes it touches. */
#include <stdio.h>
#include <string.h>

#include "checked.h"
#include "format.h"
#include "validate_parts.h"

/* On top come IN_PLACE: the tensor may be another one of these; and SCALES_OUT: its scales are outputs as well. */
enum { REQUIRED_INPUT = 0, OPTIONAL_INPUT = 1, REQUIRED_OUTPUT = 2, OPTIONAL_OUTPUT = 3, IN_PLACE = 4, SCALES_OUT = 8 };

/* What the descriptor says about one of its tensors. */
struct tensor_rule {
    const char *name;
    const rapt_tensor *tensor;
    int64_t size[3]; /* batch (or page), head, token */
    int64_t row;     /* elements of the innermost dimension */
    int32_t uses;    /* of format.h: one of them is enough; 0: scales or zero points */
    int role;
    bool paged;      /* the first dimension is that of pages */
};

static bool is_output(const struct tensor_rule *rule) { return rule->role & REQUIRED_OUTPUT; }

static bool is_optional(const struct tensor_rule *rule) { return rule->role & OPTIONAL_INPUT; }

/* Whether the numbers of a tensor may have scales. */
static bool may_scale(const rapt_tensor *t) {
    const int format = rapt_format_of(t->dtype);
    return format != RAPT_FORMAT_COUNT && (rapt_format_info(format)->uses & RAPT_MAY_SCALE);
}

/* The first field of scales or zero points that is set; NULL = none is. */
static const char *scale_field_of(const rapt_tensor *t) {
    return t->scales                     ? "scales"
           : t->zero_point_dtype         ? "zero_point_dtype"
           : t->zero_points              ? "zero_points"
           : t->scale_group              ? "scale_group"
           : t->scale_batch_stride_bytes ? "scale_batch_stride_bytes"
           : t->scale_head_stride_bytes  ? "scale_head_stride_bytes"
           : t->scale_token_stride_bytes ? "scale_token_stride_bytes"
           : t->scale_extent_bytes       ? "scale_extent_bytes"
                                         : NULL;
}

static rapt_status check_reserved_fields(struct rapt_validation *v, const struct tensor_rule *rule) {
    const rapt_tensor *t = rule->tensor;
    const char *field = t->reserved_zero                             ? "reserved_zero"
                        : t->page_stride_bytes && !rule->paged ? "page_stride_bytes"
                        : t->reserved[0]                             ? "reserved"
                        : may_scale(t)                               ? NULL
                        : t->scale_dtype                             ? "scale_dtype"
                                                                     : scale_field_of(t);
    if (!field)
        return RAPT_OK;
    return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.%s is set, but nothing uses it", rule->name, field);
}

/* Whether the call has the tensor, though perhaps no memory for it, which is all the same without rows. */
static bool is_present(const struct rapt_validation *v, const struct tensor_rule *rule) {
    const bool needs_none = v->memory == RAPT_MEMORY_GIVEN || rapt_no_rows(v->desc);
    return rule->tensor->data || (!needs_none && rule->tensor->dtype != RAPT_NO_DTYPE);
}

/* Whether a tensor with elements may have no data, and nothing in it suggests that it should have some. */
static rapt_status check_null(struct rapt_validation *v, const struct tensor_rule *rule) {
    const rapt_tensor *t = rule->tensor;
    if (v->memory == RAPT_MEMORY_LATER && is_present(v, rule))
        return RAPT_OK;
    if (!is_optional(rule) || is_present(v, rule))
        return rapt_refuse(v->message, RAPT_NULL_POINTER, "%s.data is NULL", rule->name);
    if (t->dtype || t->batch_stride_bytes || t->head_stride_bytes || t->token_stride_bytes || t->extent_bytes)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD,
                           "%s.data is NULL, but its dtype = %d or a stride or extent_bytes is set",
                           rule->name, (int)t->dtype);
    return RAPT_OK;
}

/* "float32, float16, bfloat16" */
static void list_formats(int32_t uses, char *text, size_t text_bytes) {
    size_t length = 0;
    text[0] = '\0';
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++) {
        const struct rapt_format_info *info = rapt_format_info(format);
        if ((info->uses & uses) && length < text_bytes)
            length += (size_t)snprintf(text + length, text_bytes - length, "%s%s", length ? ", " : "", info->text);
    }
}

static rapt_status check_blocks(struct rapt_validation *v, const struct tensor_rule *rule,
                                const struct rapt_format_info *info) {
    if (rule->row % info->elements)
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE,
                           "%s: rows of %lld are not whole blocks of %d, as %s has them", rule->name,
                           (long long)rule->row, info->elements, info->text);
    return RAPT_OK;
}

static rapt_status check_dtype(struct rapt_validation *v, const struct tensor_rule *rule) {
    const int format = rapt_format_of(rule->tensor->dtype);
    const bool known = format != RAPT_FORMAT_COUNT;
    char expected[160];
    if (known && (rapt_format_info(format)->uses & rule->uses))
        return check_blocks(v, rule, rapt_format_info(format));
    list_formats(rule->uses, expected, sizeof expected);
    return rapt_refuse(v->message, RAPT_UNSUPPORTED_DTYPE, "%s.dtype = %d: expected %s, got %s", rule->name,
                       (int)rule->tensor->dtype, expected, known ? rapt_format_info(format)->text : "none");
}

static rapt_status check_stride(struct rapt_validation *v, const struct tensor_rule *rule, int dim,
                                int64_t stride) {
    const char *const dims[] = {rule->paged ? "page" : "batch", "head", "token"};
    const int alignment = rapt_format_info(rapt_format_of(rule->tensor->dtype))->alignment;
    const char *why = is_output(rule) && stride == 0  ? "on an output"
                      : is_output(rule) && stride < 0 ? "is negative on an output"
                      : dim == 0 && stride == 0 && rule->paged ? "for more than one page"
                                                      : NULL;
    if (stride & (alignment - 1))
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE, "%s.%s_stride_bytes = %lld is not a multiple of %d",
                           rule->name, dims[dim], (long long)stride, alignment);
    if (why)
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE, "%s.%s_stride_bytes = %lld %s", rule->name,
                           dims[dim], (long long)stride, why);
    return RAPT_OK;
}

/* The bytes that the tensor touches, counted from data: [low, high). */
static rapt_status measure_reach(struct rapt_validation *v, const struct tensor_rule *rule,
                                 struct rapt_footprint *footprint, int64_t *low, int64_t *high) {
    const rapt_tensor *t = rule->tensor;
    const int64_t strides[3] = {rule->paged ? t->page_stride_bytes : t->batch_stride_bytes,
                                t->head_stride_bytes, t->token_stride_bytes};
    int64_t reach;
    *low = 0;
    *high = footprint->row_bytes;
    for (int dim = 0; dim < 3; dim++) {
        footprint->size[dim] = rule->size[dim];
        footprint->stride[dim] = 0;
        if (rule->size[dim] == 1)
            continue;
        const rapt_status status = check_stride(v, rule, dim, strides[dim]);
        if (status != RAPT_OK)
            return status;
        int64_t *end = strides[dim] < 0 ? low : high;
        if (!rapt_mul_fits(rule->size[dim] - 1, strides[dim], &reach) || !rapt_add_fits(*end, reach, end))
            return rapt_refuse(v->message, RAPT_INVALID_STRIDE, "%s: its strides times its sizes overflow",
                               rule->name);
        /* The most negative stride has no absolute value; check_reach refuses it. */
        footprint->stride[dim] = strides[dim] >= 0           ? strides[dim]
                                 : strides[dim] == INT64_MIN ? 0
                                                             : -strides[dim];
    }
    return RAPT_OK;
}

/* Turns the reach into addresses, and compares it with extent_bytes. */
static rapt_status check_reach(struct rapt_validation *v, const struct tensor_rule *rule,
                               struct rapt_footprint *footprint, int64_t low, int64_t high) {
    const rapt_tensor *t = rule->tensor;
    const uintptr_t data = (uintptr_t)t->data;
    if (t->extent_bytes && (low < 0 || high > t->extent_bytes))
        return rapt_refuse(v->message, RAPT_OUT_OF_EXTENT, "%s%s = %lld, but the strides reach bytes %lld ... %lld",
                           rule->name, rule->uses ? ".extent_bytes" : ": scale_extent_bytes",
                           (long long)t->extent_bytes, (long long)low, (long long)high);
    footprint->placed = data != 0;
    if (low < -INT64_MAX || (data && (data < (uint64_t)-low || UINTPTR_MAX - data < (uint64_t)high)) ||
        !rapt_add_fits(high, -low, &footprint->bytes))
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE, "%s: its strides leave the address space",
                           rule->name);
    footprint->begin = data - (uintptr_t)-low;
    return RAPT_OK;
}

static rapt_status check_memory(struct rapt_validation *v, const struct tensor_rule *rule) {
    struct rapt_footprint *footprint = &v->footprints[v->footprint_count];
    const int format = rapt_format_of(rule->tensor->dtype), alignment = rapt_format_info(format)->alignment;
    int64_t low, high;
    if ((uintptr_t)rule->tensor->data & (uintptr_t)(alignment - 1))
        return rapt_refuse(v->message, RAPT_MISALIGNED_POINTER, "%s.data = %p is not aligned to %d bytes",
                           rule->name, rule->tensor->data, alignment);
    footprint->name = rule->name;
    footprint->output = is_output(rule);
    footprint->state = rule->role & IN_PLACE ? rule->tensor : NULL;
    footprint->row_bytes = rapt_format_row_bytes(format, rule->row);
    rapt_status status = measure_reach(v, rule, footprint, &low, &high);
    if (status == RAPT_OK)
        status = check_reach(v, rule, footprint, low, high);
    if (status == RAPT_OK)
        v->footprint_count++;
    return status;
}

static rapt_status check_scale_dtypes(struct rapt_validation *v, const struct tensor_rule *rule) {
    const rapt_tensor *t = rule->tensor;
    const struct rapt_format_info *info = rapt_format_info(rapt_format_of(t->dtype));
    if (t->scale_dtype != RAPT_F32 && (t->scale_dtype || (info->uses & RAPT_MUST_SCALE)))
        return rapt_refuse(v->message, RAPT_UNSUPPORTED_DTYPE, "%s.scale_dtype = %d: expected float32", rule->name,
                           (int)t->scale_dtype);
    if (!t->scale_dtype && scale_field_of(t))
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.%s is set, but its scale_dtype = 0", rule->name,
                           scale_field_of(t));
    if (!(info->uses & RAPT_MAY_SHIFT) && (t->zero_point_dtype || t->zero_points))
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.%s is set, but %s has no zero points", rule->name,
                           t->zero_point_dtype ? "zero_point_dtype" : "zero_points", info->text);
    if (t->zero_point_dtype && t->zero_point_dtype != RAPT_I8)
        return rapt_refuse(v->message, RAPT_UNSUPPORTED_DTYPE, "%s.zero_point_dtype = %d: expected int8 or 0",
                           rule->name, (int)t->zero_point_dtype);
    if (!t->zero_point_dtype && t->zero_points)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.zero_points is set, but its zero_point_dtype = 0",
                           rule->name);
    if (t->scale_group < 0 || t->scale_group % 16)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s.scale_group = %lld is not 0 or a multiple of 16",
                           rule->name, (long long)t->scale_group);
    if (t->scale_extent_bytes < 0 || t->scale_extent_bytes % (int64_t)sizeof(float))
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s.scale_extent_bytes = %lld: expected 0, 4, 8, ...",
                           rule->name, (long long)t->scale_extent_bytes);
    return RAPT_OK;
}

/* One of scales, zero points: an array of its own, of so many numbers to a row, its strides a part of the scales'. */
static rapt_status check_scale_memory(struct rapt_validation *v, const struct tensor_rule *rule, const void *data,
                                      int32_t dtype, int64_t part) {
    const rapt_tensor *t = rule->tensor;
    const bool is_scales = dtype == RAPT_F32;
    char *name = v->scale_names[v->scale_name_count++ % RAPT_SCALE_NAMES];
    snprintf(name, sizeof v->scale_names[0], "%s.%s", rule->name, is_scales ? "scales" : "zero_points");
    if (!data && t->data)
        return rapt_refuse(v->message, RAPT_NULL_POINTER, "%s is NULL", name);
    if (data && !t->data)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s is set, but %s.data is NULL", name, rule->name);
    const rapt_tensor array = {.data = (void *)(uintptr_t)data,
                               .dtype = dtype,
                               .batch_stride_bytes = t->scale_batch_stride_bytes / part,
                               .head_stride_bytes = t->scale_head_stride_bytes / part,
                               .token_stride_bytes = t->scale_token_stride_bytes / part,
                               .extent_bytes = is_scales ? t->scale_extent_bytes : 0}; /* theirs is just as full */
    const int64_t group = t->scale_group ? t->scale_group : rule->row;
    const struct tensor_rule of_array = {.name = name,
                                         .tensor = &array,
                                         .size = {rule->size[0], rule->size[1], rule->size[2]},
                                         .row = rule->row / group + (rule->row % group != 0),
                                         .role = rule->role & SCALES_OUT ? REQUIRED_OUTPUT : REQUIRED_INPUT};
    return check_memory(v, &of_array);
}

static rapt_status check_scales(struct rapt_validation *v, const struct tensor_rule *rule, bool has_memory) {
    const rapt_tensor *t = rule->tensor;
    rapt_status status = check_scale_dtypes(v, rule);
    if (status == RAPT_OK && t->scale_dtype && has_memory)
        status = check_scale_memory(v, rule, t->scales, RAPT_F32, 1);
    if (status == RAPT_OK && t->zero_point_dtype && has_memory)
        status = check_scale_memory(v, rule, t->zero_points, RAPT_I8, (int64_t)sizeof(float));
    return status;
}

static rapt_status check_tensor(struct rapt_validation *v, const struct tensor_rule *rule) {
    const rapt_tensor *t = rule->tensor;
    const bool empty = !rule->size[0] || !rule->size[2] || !rule->row;
    rapt_status status = check_reserved_fields(v, rule);
    if (status == RAPT_OK && !t->data && !empty && !rapt_no_rows(v->desc))
        status = check_null(v, rule);
    if (status == RAPT_OK && !rapt_absent(t))
        status = check_dtype(v, rule);
    if (status == RAPT_OK && t->extent_bytes < 0)
        status = rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s.extent_bytes = %lld is negative", rule->name,
                             (long long)t->extent_bytes);
    if (status == RAPT_OK && is_present(v, rule) && !empty)
        status = check_memory(v, rule);
    return status == RAPT_OK && may_scale(t) ? check_scales(v, rule, is_present(v, rule) && !empty) : status;
}

/* Most calls have few of the tensors that they may have. */
static bool is_zero(const rapt_tensor *tensor) {
    enum { WORDS = sizeof *tensor / sizeof(uint64_t) };
    uint64_t words[WORDS], any = 0;
    memcpy(words, tensor, sizeof words);
    for (int i = 0; i < WORDS; i++)
        any |= words[i];
    return any == 0;
}

static rapt_status check_rules(struct rapt_validation *v, const struct tensor_rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_optional(&rules[i]) && is_zero(rules[i].tensor))
            continue;
        const rapt_status status = check_tensor(v, &rules[i]);
        if (status != RAPT_OK)
            return status;
    }
    return RAPT_OK;
}

rapt_status rapt_check_tensors(struct rapt_validation *v) {
    const rapt_attention_desc *d = v->desc;
    const struct rapt_extent of_queries = rapt_query_extent(d);
    const struct rapt_extent of_k = rapt_kv_extent(d, RAPT_KEYS), of_v = rapt_kv_extent(d, RAPT_VALUES);
    const int64_t batch = of_queries.batch, queries = of_queries.tokens, heads = d->query_heads, keys = d->kv_length;
    const int64_t state = d->value_dim + 2;
    const int of_out = rapt_absent(&d->final_state) ? REQUIRED_OUTPUT : OPTIONAL_OUTPUT;
    const struct tensor_rule rules[] = {
        {"query", &d->query, {batch, heads, queries}, d->head_dim, RAPT_USE_ENDS, REQUIRED_INPUT},
        {"key", &d->key, {of_k.batch, d->kv_heads, of_k.tokens}, d->head_dim, RAPT_USE_KEY_VALUE, REQUIRED_INPUT,
         rapt_is_paged(&d->key_pages)},
        {"value", &d->value, {of_v.batch, d->kv_heads, of_v.tokens}, d->value_dim, RAPT_USE_KEY_VALUE, REQUIRED_INPUT,
         rapt_is_paged(&d->value_pages)},
        {"out", &d->out, {batch, heads, queries}, d->value_dim, RAPT_USE_ENDS, of_out},
        {"mask", &d->mask, {batch, heads, queries}, keys, RAPT_USE_MASK, OPTIONAL_INPUT},
        {"bias", &d->bias, {batch, heads, queries}, keys, RAPT_USE_ENDS, OPTIONAL_INPUT},
        {"keep_mask", &d->keep_mask, {batch, heads, queries}, keys, RAPT_USE_MASK, OPTIONAL_INPUT},
        {"lse", &d->lse, {batch, heads, queries}, 1, RAPT_USE_FLOATS, OPTIONAL_OUTPUT},
        {"weights", &d->weights, {batch, heads, queries}, keys, RAPT_USE_FLOATS, OPTIONAL_OUTPUT},
        {"initial_state", &d->initial_state, {batch, heads, queries}, state, RAPT_USE_STATES,
         OPTIONAL_INPUT | IN_PLACE},
        {"final_state", &d->final_state, {batch, heads, queries}, state, RAPT_USE_STATES, OPTIONAL_OUTPUT | IN_PLACE},
    };
    return check_rules(v, rules, sizeof rules / sizeof *rules);
}

rapt_status rapt_check_merging(struct rapt_validation *v, const rapt_states_desc *d, const char *name,
                               const rapt_tensor *state) {
    const int64_t batch = d->batch, heads = d->query_heads, queries = d->query_length, floats = d->value_dim + 2;
    const struct tensor_rule rules[] = {
        {name, state, {batch, heads, queries}, floats, RAPT_USE_STATES, REQUIRED_INPUT | IN_PLACE},
        {"merged", &d->merged, {batch, heads, queries}, floats, RAPT_USE_STATES, OPTIONAL_OUTPUT | IN_PLACE},
        {"out", &d->out, {batch, heads, queries}, d->value_dim, RAPT_USE_ENDS, OPTIONAL_OUTPUT},
        {"lse", &d->lse, {batch, heads, queries}, 1, RAPT_USE_STATES, OPTIONAL_OUTPUT},
    };
    return check_rules(v, rules, sizeof rules / sizeof *rules);
}

/* One that is absent has no size and no fields. */
rapt_status rapt_check_claim(struct rapt_validation *v, const struct rapt_tensor_claim *claim) {
    const bool absent = rapt_absent(claim->tensor);
    const struct tensor_rule rule = {.name = claim->name,
                                     .tensor = claim->tensor,
                                     .size = {claim->size[0], claim->size[1], claim->size[2]},
                                     .row = claim->row,
                                     .uses = RAPT_USE_KEY_VALUE,
                                     .role = absent                 ? OPTIONAL_INPUT
                                             : claim->writes_scales ? REQUIRED_OUTPUT | SCALES_OUT
                                             : claim->output        ? REQUIRED_OUTPUT
                                                                    : REQUIRED_INPUT,
                                     .paged = claim->paged};
    return check_tensor(v, &rule);
}
