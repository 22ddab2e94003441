/* SPDX-License-Identifier: MIT */
#include "attend/pages.h"

#include "attend/broadcast.h"
#include "attend/problem.h"
#include "common/tool.h"
#include "files/npy.h"

rapt_tensor pages_as_batches(rapt_tensor tensor) {
    tensor.batch_stride_bytes = tensor.page_stride_bytes;
    tensor.page_stride_bytes = 0;
    return tensor;
}

rapt_tensor pages_of_batches(rapt_tensor tensor) {
    tensor.page_stride_bytes = tensor.batch_stride_bytes;
    tensor.batch_stride_bytes = 0;
    return tensor;
}

void pages_add(rapt_attention_desc *desc, const char *path, int64_t pages) {
    const struct npy_array table = npy_read(path, NPY_INT32 | NPY_INT64);
    const int64_t each = table.dims ? table.shape[table.dims - 1] : 0;
    char shape[NPY_SHAPE_TEXT];
    if (table.dims < 1 || table.dims > 2 || each == 0 || (table.dims == 2 ? table.shape[0] : 1) != desc->batch)
        tool_die("%s %s: expected the pages of each of %lld sequences, [batch, pages of a sequence]", path,
                 npy_shape_text(table.dims, table.shape, shape), (long long)desc->batch);
    if (desc->kv_length == 0) tool_die("%s: its pages have 0 tokens", path);
    desc->key_pages = (rapt_page_table){.kind = RAPT_PAGES_DENSE,
                                        .page_tokens = desc->kv_length,
                                        .pages = pages,
                                        .entries = list_of(&table),
                                        .batch_stride_bytes = each * npy_item_bytes(table.type)};
    desc->key_pages.entries.count = each;
    desc->value_pages = desc->key_pages;
    desc->key = pages_of_batches(desc->key);
    desc->value = pages_of_batches(desc->value);
    desc->kv_length = tool_product(desc->kv_length, each, path);
}

void pages_check(const rapt_attention_desc *desc, const char *path) {
    const rapt_page_table *table = &desc->key_pages;
    for (int64_t b = 0; b < desc->batch; b++) {
        const int64_t length = problem_list_at(desc->kv_lengths, b, desc->kv_length);
        for (int64_t i = 0; i * table->page_tokens < length && i < table->entries.count; i++) {
            const int64_t page = problem_list_at(table->entries, b * table->entries.count + i, 0);
            if (page < 0 || page >= table->pages)
                tool_die("%s: page %lld of sequence %lld is %lld, outside 0 ... %lld", path, (long long)i, (long long)b,
                         (long long)page, (long long)table->pages - 1);
        }
    }
}
