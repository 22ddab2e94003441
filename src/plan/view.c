/* SPDX-License-Identifier: MIT */
#include "plan/view.h"

#include "pages.h"

static bool is_same_layout(const rapt_tensor *a, const rapt_tensor *b) {
    return a->batch_stride_bytes == b->batch_stride_bytes && a->head_stride_bytes == b->head_stride_bytes &&
           a->token_stride_bytes == b->token_stride_bytes && a->page_stride_bytes == b->page_stride_bytes;
}

/* Values with scales must begin where their keys do: otherwise a group of scales might not begin there. */
static bool is_same_scale(const rapt_tensor *a, const rapt_tensor *b, int64_t first) {
    if (!a->scales && !b->scales)
        return true;
    return first == 0 && a->scales == b->scales && a->zero_points == b->zero_points &&
           a->scale_group == b->scale_group && a->scale_batch_stride_bytes == b->scale_batch_stride_bytes &&
           a->scale_head_stride_bytes == b->scale_head_stride_bytes &&
           a->scale_token_stride_bytes == b->scale_token_stride_bytes;
}

void rapt_find_view(struct rapt_plan_body *plan) {
    const rapt_tensor *key = &plan->desc.key, *value = &plan->desc.value;
    const struct rapt_format_info *format = rapt_format_info(plan->format[RAPT_KEYS]);
    const uintptr_t offset = (uintptr_t)value->data - (uintptr_t)key->data; /* huge where values come first */
    const int64_t key_bytes = rapt_format_row_bytes(plan->format[RAPT_KEYS], plan->desc.head_dim);
    plan->values_in_keys = -1;
    if (!key->data || !value->data || plan->format[RAPT_KEYS] != plan->format[RAPT_VALUES] ||
        offset >= (uintptr_t)key_bytes || offset % (uintptr_t)format->bytes != 0)
        return;
    const int64_t first = (int64_t)offset / format->bytes * format->elements;
    if (first + plan->desc.value_dim <= plan->desc.head_dim && is_same_layout(key, value) &&
        is_same_scale(key, value, first) && rapt_is_one_table(&plan->desc))
        plan->values_in_keys = first;
}
