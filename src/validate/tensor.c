/* SPDX-License-Identifier: MIT
 * Each tensor on its own: what it may hold and which bytes it touches. */
#include <stddef.h>
#include <stdio.h>

#include "assume.h"
#include "format.h"
#include "validate/tensor.h"

static bool is_output(const struct rapt_tensor_rule *rule) { return rule->role & RAPT_ROLE_OUTPUT; }

static bool is_optional(const struct rapt_tensor_rule *rule) { return rule->role & RAPT_ROLE_OPTIONAL; }

/* NULL for an unknown dtype. */
static const struct rapt_format_info *info_of(const rapt_tensor *t) {
    const int format = rapt_format_of(t->dtype);
    return format != RAPT_FORMAT_COUNT ? rapt_format_info(format) : NULL;
}

/* Whether a format may have scales. */
static bool may_scale(const struct rapt_format_info *info) { return info && (info->uses & RAPT_MAY_SCALE); }

/* The first field of scales or zero points that is set; NULL = none. */
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

/* Whether the tensor, like most, has no scales, pages or reserved words. */
static bool is_plain(const rapt_tensor *t) {
    const size_t first = offsetof(rapt_tensor, scale_dtype);
    return !t->reserved_zero && rapt_is_zero((const char *)t + first, sizeof *t - first);
}

static rapt_status check_reserved_fields(struct rapt_validation *v, const struct rapt_tensor_rule *rule) {
    const rapt_tensor *t = rule->tensor;
    const char *field = t->reserved_zero                             ? "reserved_zero"
                        : t->page_stride_bytes && !rule->paged       ? "page_stride_bytes"
                        : t->reserved[0]                             ? "reserved"
                        : may_scale(info_of(t))                      ? NULL
                        : t->scale_dtype                             ? "scale_dtype"
                                                                     : scale_field_of(t);
    if (!field)
        return RAPT_OK;
    return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "%s.%s is set, but nothing uses it", rule->name, field);
}

/* Whether the call has the tensor: data or, if these may come later and there are rows, a dtype. */
static bool is_present(const struct rapt_validation *v, const struct rapt_tensor_rule *rule) {
    const bool may_come_later = v->memory != RAPT_MEMORY_GIVEN && !rapt_no_rows(v->desc);
    return rule->tensor->data || (may_come_later && rule->tensor->dtype != RAPT_NO_DTYPE);
}

/* Whether a tensor with elements may lack data, and no field of it suggests that it should have some. */
static rapt_status check_null(struct rapt_validation *v, const struct rapt_tensor_rule *rule) {
    const rapt_tensor *t = rule->tensor;
    if (v->memory == RAPT_MEMORY_LATER && is_present(v, rule))
        return RAPT_OK;
    if (!is_optional(rule) || is_present(v, rule))
        return rapt_refuse(v->message, RAPT_NULL_POINTER,
                           v->memory == RAPT_MEMORY_LATER ? "%s.dtype = 0, but a plan without data requires one"
                                                          : "%s.data is NULL",
                           rule->name);
    const struct rapt_field fields[] = {{"dtype", t->dtype},
                                        {"batch_stride_bytes", t->batch_stride_bytes},
                                        {"head_stride_bytes", t->head_stride_bytes},
                                        {"token_stride_bytes", t->token_stride_bytes},
                                        {"extent_bytes", t->extent_bytes}};
    return rapt_check_unset(rule->name, fields, sizeof fields / sizeof *fields, v->message);
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

static rapt_status check_blocks(struct rapt_validation *v, const struct rapt_tensor_rule *rule,
                                const struct rapt_format_info *info) {
    if (rule->row & (info->elements - 1))
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE,
                           "%s: rows of %lld are not whole blocks of %d, as %s has them", rule->name,
                           (long long)rule->row, info->elements, info->text);
    return RAPT_OK;
}

static rapt_status refuse_dtype(struct rapt_validation *v, const struct rapt_tensor_rule *rule,
                                const struct rapt_format_info *info) {
    char expected[160];
    list_formats(rule->uses, expected, sizeof expected);
    return rapt_refuse(v->message, RAPT_UNSUPPORTED_DTYPE, "%s.dtype = %d: expected %s, got %s", rule->name,
                       (int)rule->tensor->dtype, expected, info ? info->text : "none");
}

enum { FIELD_BYTES = 96 };

/* Strides of scales and zero points are fields of their tensor: key.scale_token_stride_bytes. */
static const char *name_stride(const struct rapt_tensor_rule *rule, int dim, char text[FIELD_BYTES]) {
    const bool of_scales = !rule->uses;
    const char *const name = dim == 1 ? "head" : dim == 2 ? "token" : rule->paged ? "page" : "batch";
    int length = 0;
    while (rule->name[length] && !(of_scales && rule->name[length] == '.'))
        length++;
    snprintf(text, FIELD_BYTES, "%.*s.%s%s_stride_bytes", length, rule->name, of_scales ? "scale_" : "", name);
    return text;
}

static rapt_status check_stride(struct rapt_validation *v, const struct rapt_tensor_rule *rule, int alignment, int dim,
                                int64_t stride) {
    char name[FIELD_BYTES];
    const char *why = is_output(rule) && stride == 0  ? "on an output"
                      : is_output(rule) && stride < 0 ? "is negative on an output"
                      : dim == 0 && stride == 0 && rule->paged ? "for more than one page"
                                                      : NULL;
    if (stride & (alignment - 1))
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE, "%s = %lld is not a multiple of %d",
                           name_stride(rule, dim, name), (long long)stride, alignment);
    if (why)
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE, "%s = %lld %s", name_stride(rule, dim, name),
                           (long long)stride, why);
    return RAPT_OK;
}

static rapt_status measure_reach(struct rapt_validation *v, const struct rapt_tensor_rule *rule, int alignment,
                                 struct rapt_footprint *footprint, struct rapt_reach *reach) {
    const rapt_tensor *t = rule->tensor;
    const int64_t strides[3] = {rule->paged ? t->page_stride_bytes : t->batch_stride_bytes,
                                t->head_stride_bytes, t->token_stride_bytes};
    for (int dim = 0; dim < 3; dim++) {
        const int64_t size = rule->size[dim], stride = size != 1 ? strides[dim] : 0;
        char name[FIELD_BYTES];
        const rapt_status status = size != 1 ? check_stride(v, rule, alignment, dim, stride) : RAPT_OK;
        if (status != RAPT_OK)
            return status;
        if (!rapt_add_reach(size, stride, reach))
            return rapt_refuse(v->message, RAPT_INVALID_STRIDE, "%s = %lld overflows int64 with a size of %lld",
                               name_stride(rule, dim, name), (long long)stride, (long long)size);
        footprint->size[dim] = size;
        /* The most negative stride has no absolute value; check_reach refuses it. */
        footprint->stride[dim] = stride >= 0 ? stride : stride == INT64_MIN ? 0 : -stride;
    }
    return RAPT_OK;
}

/* Turns the reach into addresses, and compares it with extent_bytes. */
static rapt_status check_reach(struct rapt_validation *v, const struct rapt_tensor_rule *rule,
                               struct rapt_footprint *footprint, const struct rapt_reach *reach) {
    const rapt_tensor *t = rule->tensor;
    const int64_t low = reach->low, high = reach->high;
    if (t->extent_bytes && (low < 0 || high > t->extent_bytes))
        return rapt_refuse(v->message, RAPT_OUT_OF_EXTENT, "%s%s = %lld, but the strides reach bytes %lld ... %lld",
                           rule->name, rule->uses ? ".extent_bytes" : ": scale_extent_bytes",
                           (long long)t->extent_bytes, (long long)low, (long long)high);
    if (!rapt_place(footprint, t->data, *reach))
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE,
                           "%s%s = %p: the strides reach bytes %lld ... %lld, beyond the address space", rule->name,
                           rule->uses ? ".data" : "", t->data, (long long)low, (long long)high);
    return RAPT_OK;
}

static rapt_status check_memory(struct rapt_validation *v, const struct rapt_tensor_rule *rule,
                                const struct rapt_format_info *info) {
    struct rapt_footprint *footprint = &v->footprints[v->footprint_count];
    const int alignment = info->alignment;
    if ((uintptr_t)rule->tensor->data & (uintptr_t)(alignment - 1))
        return rapt_refuse(v->message, RAPT_MISALIGNED_POINTER, "%s%s = %p is not aligned to %d bytes", rule->name,
                           rule->uses ? ".data" : "", rule->tensor->data, alignment);
    footprint->name = rule->name;
    footprint->output = is_output(rule);
    footprint->state = rule->role & RAPT_ROLE_IN_PLACE ? rule->tensor : NULL;
    footprint->row_bytes = (rule->row >> __builtin_ctz((unsigned)info->elements)) * info->bytes;
    struct rapt_reach reach = {0, footprint->row_bytes};
    rapt_status status = measure_reach(v, rule, alignment, footprint, &reach);
    if (status == RAPT_OK)
        status = check_reach(v, rule, footprint, &reach);
    if (status == RAPT_OK)
        v->footprint_count++;
    return status;
}

static rapt_status check_scale_dtypes(struct rapt_validation *v, const struct rapt_tensor_rule *rule,
                                      const struct rapt_format_info *info) {
    const rapt_tensor *t = rule->tensor;
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

/* Scales or zero points: an array of its own, whose strides are those of the scales divided by `part`. */
static rapt_status check_scale_memory(struct rapt_validation *v, const struct rapt_tensor_rule *rule, const void *data,
                                      int32_t dtype, int64_t part) {
    const rapt_tensor *t = rule->tensor;
    const bool is_scales = dtype == RAPT_F32;
    RAPT_ASSUME(v->scale_name_count < RAPT_SCALE_NAMES);
    char *name = v->scale_names[v->scale_name_count++];
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
                               .extent_bytes = is_scales ? t->scale_extent_bytes : 0}; /* the scales' bounds both */
    const int64_t group = t->scale_group ? t->scale_group : rule->row;
    const struct rapt_tensor_rule of_array = {
        .name = name,
        .tensor = &array,
        .size = rule->size,
        .row = rapt_quotient_up(rule->row, group),
        .role = rule->role & RAPT_ROLE_SCALES_OUT ? RAPT_ROLE_OUTPUT : RAPT_ROLE_INPUT};
    return check_memory(v, &of_array, info_of(&array));
}

static rapt_status check_scales(struct rapt_validation *v, const struct rapt_tensor_rule *rule,
                                const struct rapt_format_info *info, bool has_memory) {
    const rapt_tensor *t = rule->tensor;
    rapt_status status = check_scale_dtypes(v, rule, info);
    if (status == RAPT_OK && t->scale_dtype && has_memory)
        status = check_scale_memory(v, rule, t->scales, RAPT_F32, 1);
    if (status == RAPT_OK && t->zero_point_dtype && has_memory)
        status = check_scale_memory(v, rule, t->zero_points, RAPT_I8, (int64_t)sizeof(float));
    return status;
}

rapt_status rapt_check_tensor(struct rapt_validation *v, const struct rapt_tensor_rule *rule) {
    const rapt_tensor *t = rule->tensor;
    const struct rapt_format_info *info = info_of(t);
    const bool empty = !rule->size[0] || !rule->size[2] || !rule->row;
    rapt_status status = is_plain(t) ? RAPT_OK : check_reserved_fields(v, rule);
    if (status == RAPT_OK && !t->data && !empty && !rapt_no_rows(v->desc))
        status = check_null(v, rule);
    if (status == RAPT_OK && !rapt_absent(t))
        status = info && (info->uses & rule->uses) ? check_blocks(v, rule, info) : refuse_dtype(v, rule, info);
    if (status == RAPT_OK && t->extent_bytes < 0)
        status = rapt_refuse(v->message, RAPT_INVALID_VALUE, "%s.extent_bytes = %lld is negative", rule->name,
                             (long long)t->extent_bytes);
    const bool has_memory = !empty && is_present(v, rule);
    if (status == RAPT_OK && has_memory)
        status = check_memory(v, rule, info);
    return status == RAPT_OK && may_scale(info) ? check_scales(v, rule, info, has_memory) : status;
}
