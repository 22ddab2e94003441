/* SPDX-License-Identifier: MIT */
#include "attend/selection.h"

#include <stdbool.h>
#include <string.h>

#include "common/tool.h"
#include "files/npy.h"

enum { MOST_TREE_TOKENS = 64 };

/* Whether the size of an array's dimension, of at most `most`, equals the call's, or is 1 or absent. */
static bool broadcasts(const struct npy_array *array, int most, int dimension, int64_t size) {
    const int at = dimension - (most - array->dims);
    return at < 0 || array->shape[at] == size || array->shape[at] == 1;
}

static void add_tree(rapt_attention_desc *desc, const char *path) {
    const struct npy_array tree = npy_read(path, NPY_BOOL);
    const int64_t queries = desc->query_length, tokens = tree.dims ? tree.shape[tree.dims - 1] : 0;
    char shape[NPY_SHAPE_TEXT];
    npy_shape_text(tree.dims, tree.shape, shape);
    if (tree.dims < 2 || tree.dims > 3 || tree.shape[tree.dims - 2] != queries || !broadcasts(&tree, 3, 0, desc->batch))
        tool_die("%s %s: expected [batch, queries, tokens of the tree], here [%lld, %lld, 1 ... %d]", path, shape,
                 (long long)desc->batch, (long long)queries, MOST_TREE_TOKENS);
    if (tokens < 1 || tokens > MOST_TREE_TOKENS)
        tool_die("%s %s: a tree has 1 ... %d tokens, not %lld", path, shape, MOST_TREE_TOKENS, (long long)tokens);
    const int64_t rows = tool_product(desc->batch, queries, path);
    uint64_t *masks = tool_allocate(rows, sizeof *masks, path);
    for (int64_t row = 0; row < rows; row++) {
        const unsigned char *seen = (const unsigned char *)tree.data + row % (tree.count / tokens) * tokens;
        for (int64_t i = 0; i < tokens; i++) masks[row] |= (uint64_t)(seen[i] != 0) << i;
    }
    desc->tree_tokens = tokens;
    desc->tree_masks = rapt_int64_list((const int64_t *)masks, rows);
}

static int64_t blocks_in(int64_t tokens, int64_t of_block) {
    return tokens / of_block + (tokens % of_block != 0);
}

static int64_t entry_at(const struct npy_array *array, int64_t i) {
    return array->type == NPY_INT32 ? ((const int32_t *)array->data)[i] : ((const int64_t *)array->data)[i];
}

/* Marks the blocks of list n, of length entries. */
static void mark_blocks(const struct npy_array *array, int64_t n, int64_t length, bool *marked, int64_t key_blocks) {
    memset(marked, 0, (size_t)key_blocks);
    for (int64_t i = n * length; i < (n + 1) * length; i++) {
        const int64_t block = entry_at(array, i);
        if (block < -1 || block >= key_blocks)
            tool_die("%s: number %lld, %lld, is outside -1 ... %lld, the blocks of keys", array->path, (long long)i,
                     (long long)block, (long long)key_blocks - 1);
        if (block >= 0) marked[block] = true;
    }
}

/* Sorts lists; drops -1 and duplicates. */
static void add_lists(rapt_block_list *blocks, const struct npy_array *array, int64_t key_blocks) {
    const int64_t length = array->shape[array->dims - 1], lists = length ? array->count / length : 0;
    int64_t *offsets = tool_allocate(lists + 1, sizeof *offsets, array->path), count = 0;
    int64_t *entries = tool_allocate(array->count, sizeof *entries, array->path);
    bool *marked = tool_allocate(key_blocks, sizeof *marked, array->path);
    for (int64_t n = 0; n < lists; n++) {
        mark_blocks(array, n, length, marked, key_blocks);
        for (int64_t block = 0; block < key_blocks; block++)
            if (marked[block]) entries[count++] = block;
        offsets[n + 1] = count;
    }
    blocks->offsets = rapt_int64_list(offsets, lists + 1);
    blocks->entries = rapt_int64_list(entries, count);
}

static void add_key_blocks(rapt_attention_desc *desc, const char *path, struct option_pair size) {
    if (size.first < 1 || size.second < 1)
        tool_die("--block-size: %lld,%lld: a block has 1 token or more", (long long)size.first, (long long)size.second);
    const struct npy_array array = npy_read(path, NPY_INT32 | NPY_INT64);
    const int64_t query_blocks = blocks_in(desc->query_length, size.first);
    char shape[NPY_SHAPE_TEXT];
    if (array.dims < 2 || array.dims > 4 || array.shape[array.dims - 2] != query_blocks ||
        array.shape[array.dims - 1] == 0 || !broadcasts(&array, 4, 0, desc->batch) ||
        !broadcasts(&array, 4, 1, desc->kv_heads))
        tool_die("%s %s: expected [batch, key heads, blocks of queries, n], here [%lld, %lld, %lld, 1 or more]", path,
                  npy_shape_text(array.dims, array.shape, shape), (long long)desc->batch,
                 (long long)desc->kv_heads, (long long)query_blocks);
    rapt_block_list *blocks = &desc->key_blocks;
    const int64_t heads = array.dims > 2 ? array.shape[array.dims - 3] : 1;
    blocks->query_tokens = size.first;
    blocks->key_tokens = size.second;
    blocks->head_stride = heads > 1 ? query_blocks : 0;
    blocks->batch_stride = array.dims == 4 && array.shape[0] > 1 ? heads * query_blocks : 0;
    add_lists(blocks, &array, blocks_in(desc->kv_length, size.second));
}

void selection_add(rapt_attention_desc *desc, const struct attend_options *options) {
    if (options->tree) add_tree(desc, options->tree);
    if (options->key_blocks) add_key_blocks(desc, options->key_blocks, options->block_size);
}
