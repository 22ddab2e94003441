/* SPDX-License-Identifier: MIT
 * Complete copies of what rapt_append and rapt_rotate get. */
#include <stddef.h>
#include <string.h>

#include "append/lists.h"
#include "describe.h"
#include "refuse.h"

static void complete_rotary(rapt_rotary *rotary, int64_t head_dim) {
    const bool yarn = rotary->scaling == RAPT_ROTARY_YARN, llama3 = rotary->scaling == RAPT_ROTARY_LLAMA3;
    if (rotary->pairing == RAPT_ROTARY_NONE)
        return;
    if (rotary->dim == 0)
        rotary->dim = head_dim;
    if (rotary->cosines && rotary->table_stride_bytes == 0 && rapt_is_inside(rotary->dim, 2, RAPT_MAX_HEAD_DIM))
        rotary->table_stride_bytes = rotary->dim / 2 * (int64_t)sizeof(float);
    if (rotary->low_factor == 0 && (yarn || llama3))
        rotary->low_factor = 1;
    if (rotary->high_factor == 0 && (yarn || llama3))
        rotary->high_factor = yarn ? 32 : 4;
}

static void complete_lists(rapt_append_desc *d) {
    rapt_index_list *const lists[] = {&d->positions,        &d->slots,         &d->lengths,      &d->offsets,
                                      &d->rotary_positions, &d->pages.entries, &d->pages.offsets};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        rapt_complete_list(lists[i]);
}

/* Of a single page. That of scales is refused where there are none. */
static void clear_page_strides(rapt_tensor *cache) {
    cache->page_stride_bytes = 0;
    if (cache->scale_dtype != RAPT_NO_DTYPE)
        cache->scale_batch_stride_bytes = 0;
}

static void complete(rapt_append_desc *d) {
    const struct rapt_cache_shape shape = rapt_cache_shape_of(d);
    const bool packed = d->offsets.data;
    rapt_tensor *const from[] = {&d->key, &d->value}, *const into[] = {&d->key_cache, &d->value_cache};
    if (d->value_dim == 0)
        d->value_dim = d->head_dim;
    for (int i = 0; i < 2; i++) {
        rapt_clear_strides(from[i], packed ? 1 : d->batch, d->kv_heads, packed ? d->tokens : d->length);
        rapt_clear_strides(into[i], shape.paged ? 2 : shape.pages, d->kv_heads, shape.page_tokens);
        if (shape.paged && shape.pages == 1)
            clear_page_strides(into[i]);
    }
    complete_lists(d);
    complete_rotary(&d->rotary, d->head_dim);
}

rapt_status rapt_describe_append(const rapt_append_desc *desc, rapt_append_desc *into, rapt_message *message) {
    if (!desc)
        return rapt_refuse(message, RAPT_NULL_POINTER, "desc is NULL");
    const rapt_status status =
        rapt_describe_copy(offsetof(rapt_append_desc, reserved), sizeof *desc, desc, into, message);
    if (status == RAPT_OK)
        complete(into);
    return status;
}

rapt_status rapt_describe_rotate(const rapt_rotate_desc *desc, rapt_append_desc *into, rapt_message *message) {
    rapt_rotate_desc d;
    if (!desc)
        return rapt_refuse(message, RAPT_NULL_POINTER, "desc is NULL");
    rapt_status status = rapt_describe_copy(offsetof(rapt_rotate_desc, reserved), sizeof *desc, desc, &d, message);
    if (status == RAPT_OK)
        status = rapt_check_reserved_zero("", d.reserved_zero, message);
    if (status != RAPT_OK)
        return status;
    *into = (rapt_append_desc){.numerics = d.numerics,
                               .isa = d.isa,
                               .features = RAPT_ROTATES_ALONE,
                               .batch = d.batch,
                               .kv_heads = d.heads,
                               .length = d.length,
                               .tokens = d.tokens,
                               .cache_length = d.length,
                               .head_dim = d.head_dim,
                               .key = d.in,
                               .key_cache = d.out,
                               .positions = d.first_positions,
                               .lengths = d.lengths,
                               .offsets = d.offsets,
                               .rotary_positions = d.positions,
                               .rotary = d.rotary};
    memcpy(into->reserved, d.reserved, sizeof d.reserved);
    complete(into);
    return d.rotary.pairing ? RAPT_OK : rapt_refuse(message, RAPT_UNSUPPORTED_FLAG, "rotary.pairing = 0");
}
