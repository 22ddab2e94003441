/* SPDX-License-Identifier: MIT
 * Trees and lists of key blocks. */
#include <string.h>

#include "checked.h"
#include "validate/parts.h"

static rapt_status check_tree(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const rapt_index_list *masks = &desc->tree_masks;
    static const rapt_index_list none = {0};
    const bool packed = desc->query_offsets.data;
    const int64_t tokens = desc->tree_tokens, count = packed ? desc->query_tokens : desc->batch * desc->query_length;
    if (tokens < 0 || tokens > 64)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "tree_tokens = %lld is outside 0 ... 64", (long long)tokens);
    if (tokens == 0 && memcmp(masks, &none, sizeof none) != 0)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "tree_masks is set, but tree_tokens = 0");
    if (tokens == 0)
        return RAPT_OK;
    const rapt_status status = rapt_check_list(v, "tree_masks", *masks, count);
    if (status != RAPT_OK)
        return status;
    if (!masks->data && count)
        return rapt_refuse(v->message, RAPT_NULL_POINTER, "tree_masks.data is NULL, but tree_tokens = %lld",
                           (long long)tokens);
    if (masks->data && masks->index_bytes == 4 && tokens > 32)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE,
                           "tree_tokens = %lld, but tree_masks.index_bytes = 4 holds 32 bits", (long long)tokens);
    return RAPT_OK;
}

/* ---- lists of key blocks */

static rapt_status check_block_fields(struct rapt_validation *v) {
    const rapt_block_list *blocks = &v->desc->key_blocks;
    if (blocks->query_tokens < 1)
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE, "key_blocks.query_tokens = %lld is below 1",
                           (long long)blocks->query_tokens);
    if (blocks->key_tokens < 1)
        return rapt_refuse(v->message, RAPT_INVALID_SHAPE, "key_blocks.key_tokens = %lld is below 1",
                           (long long)blocks->key_tokens);
    if (blocks->batch_stride < 0 || blocks->head_stride < 0)
        return rapt_refuse(v->message, RAPT_INVALID_STRIDE,
                           "key_blocks.batch_stride = %lld, head_stride = %lld: one is negative",
                           (long long)blocks->batch_stride, (long long)blocks->head_stride);
    return RAPT_CHECK_RESERVED("key_blocks.reserved", blocks->reserved, v->message);
}

/* Counts the offsets up to the end of the last list. */
static bool count_offsets(const rapt_attention_desc *desc, int64_t *count) {
    const rapt_block_list *blocks = &desc->key_blocks;
    int64_t of_batch, of_heads;
    *count = 0;
    if (rapt_no_rows(desc))
        return true;
    return rapt_mul_fits(desc->batch - 1, blocks->batch_stride, &of_batch) &&
           rapt_mul_fits(desc->kv_heads - 1, blocks->head_stride, &of_heads) &&
           rapt_add_fits(of_batch, of_heads, count) &&
           rapt_add_fits(*count, rapt_quotient_up(desc->query_length, blocks->query_tokens) + 1, count);
}

static rapt_status check_block_tables(struct rapt_validation *v) {
    const rapt_block_list *blocks = &v->desc->key_blocks;
    int64_t offsets;
    if (!count_offsets(v->desc, &offsets))
        return rapt_refuse(v->message, RAPT_SIZE_OVERFLOW,
                           "key_blocks.batch_stride = %lld, head_stride = %lld: the number of lists overflows",
                           (long long)blocks->batch_stride, (long long)blocks->head_stride);
    rapt_status status = rapt_check_list(v, "key_blocks.offsets", blocks->offsets, offsets);
    if (status == RAPT_OK && offsets && !blocks->offsets.data)
        return rapt_refuse(v->message, RAPT_NULL_POINTER, "key_blocks.offsets.data is NULL");
    if (status == RAPT_OK)
        status = rapt_check_list(v, "key_blocks.entries", blocks->entries, blocks->entries.count);
    return status;
}

/* The entries of list n. */
static rapt_status check_entries(struct rapt_validation *v, int64_t n) {
    const rapt_block_list *blocks = &v->desc->key_blocks;
    const int64_t begin = rapt_index_at(blocks->offsets, n), end = rapt_index_at(blocks->offsets, n + 1);
    const int64_t key_blocks = rapt_quotient_up(v->desc->kv_length, blocks->key_tokens);
    if (begin < 0 || end < begin)
        return rapt_refuse(v->message, RAPT_INVALID_VALUE, "key_blocks.offsets[%lld] = %lld, and the next one is %lld",
                           (long long)n, (long long)begin, (long long)end);
    if (end > blocks->entries.count)
        return rapt_refuse(v->message, RAPT_OUT_OF_EXTENT, "key_blocks.offsets[%lld] = %lld, but entries.count = %lld",
                           (long long)n + 1, (long long)end, (long long)blocks->entries.count);
    int64_t before = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t block = rapt_index_at(blocks->entries, i);
        if (block < 0 || block >= key_blocks)
            return rapt_refuse(v->message, RAPT_INVALID_VALUE, "key_blocks.entries[%lld] = %lld is outside 0 ... %lld",
                               (long long)i, (long long)block, (long long)key_blocks - 1);
        if (block <= before)
            return rapt_refuse(v->message, RAPT_INVALID_VALUE,
                               "key_blocks.entries[%lld] = %lld does not follow %lld, which is before it",
                               (long long)i, (long long)block, (long long)before);
        before = block;
    }
    return RAPT_OK;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* The first head of sequence b whose lists begin where none before do: at a common multiple of the strides those of an
 * earlier sequence and a later head begin. */
static int64_t first_new_head(const rapt_block_list *blocks, int64_t b, int64_t heads) {
    if (b == 0)
        return 0;
    const int64_t divisor = common_divisor(blocks->batch_stride, blocks->head_stride);
    const int64_t same = heads - blocks->batch_stride / divisor;
    return b >= blocks->head_stride / divisor && same > 0 ? same : 0;
}

/* Makes a run of lists longer by a dimension whose steps leave no gap between runs. */
static void join(int64_t *run, int64_t *size, int64_t stride) {
    if (stride > *run)
        return;
    *run += (*size - 1) * stride;
    *size = 1;
}

/* Without data, memory bounds only how many numbers of lists there are, not how many sequences and heads share them. */
static rapt_status check_all_lists(struct rapt_validation *v) {
    const rapt_block_list *blocks = &v->desc->key_blocks;
    int64_t batch = v->desc->batch, heads = v->desc->kv_heads;
    int64_t run = rapt_quotient_up(v->desc->query_length, blocks->query_tokens);
    join(&run, &heads, blocks->head_stride);
    join(&run, &batch, blocks->batch_stride);
    join(&run, &heads, blocks->head_stride); /* runs may have become long enough */
    rapt_status status = RAPT_OK;
    for (int64_t b = 0; status == RAPT_OK && b < batch; b++)
        for (int64_t h = first_new_head(blocks, b, heads); status == RAPT_OK && h < heads; h++)
            for (int64_t i = 0; status == RAPT_OK && i < run; i++)
                status = check_entries(v, b * blocks->batch_stride + h * blocks->head_stride + i);
    return status;
}

static rapt_status check_blocks(struct rapt_validation *v) {
    const rapt_attention_desc *desc = v->desc;
    const rapt_block_list *blocks = &desc->key_blocks;
    static const rapt_block_list none = {0};
    if (blocks->query_tokens == 0 && memcmp(blocks, &none, sizeof none) != 0)
        return rapt_refuse(v->message, RAPT_UNUSED_FIELD, "key_blocks is set, but its query_tokens = 0");
    if (blocks->query_tokens == 0)
        return RAPT_OK;
    rapt_status status = check_block_fields(v);
    if (status == RAPT_OK)
        status = check_block_tables(v);
    if (status != RAPT_OK || rapt_no_rows(desc) || v->memory == RAPT_MEMORY_BINDING)
        return status;
    return check_all_lists(v);
}

rapt_status rapt_check_selection(struct rapt_validation *v) {
    const rapt_status status = check_tree(v);
    return status == RAPT_OK ? check_blocks(v) : status;
}
