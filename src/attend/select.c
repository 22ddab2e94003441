/* SPDX-License-Identifier: MIT */
#include "attend/select.h"

#include <string.h>

static const rapt_block_list *blocks_of(const struct rapt_task *task) { return &task->plan->desc.key_blocks; }
static bool has_blocks(const struct rapt_task *task) { return blocks_of(task)->query_tokens > 0; }

/* ---- lists of key blocks */

/* Entries [at, end) of a list. */
struct entries {
    int64_t at, end;
};

static int64_t clipped(int64_t x, int64_t least, int64_t most) { return x < least ? least : x > most ? most : x; }

static struct entries entries_of(const struct rapt_task *task, int64_t query_block) {
    const rapt_block_list *blocks = blocks_of(task);
    const int64_t list = task->work.batch * blocks->batch_stride + task->kv_head * blocks->head_stride + query_block;
    struct entries entries;
    entries.at = clipped(rapt_index_at(blocks->offsets, list), 0, blocks->entries.count);
    entries.end = clipped(rapt_index_at(blocks->offsets, list + 1), entries.at, blocks->entries.count);
    return entries;
}

/* The rest of a list, from the first entry >= key_block on. */
static struct entries entries_from(const struct rapt_task *task, struct entries entries, int64_t key_block) {
    int64_t low = entries.at, high = entries.end;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (rapt_index_at(blocks_of(task)->entries, middle) < key_block)
            low = middle + 1;
        else
            high = middle;
    }
    return (struct entries){low, entries.end};
}

/* Sets the bytes of the stored keys [begin, end) that a list names; bytes begins with key `begin`. */
static void select_listed(const struct rapt_task *task, int64_t query, int64_t begin, int64_t end, uint8_t *bytes) {
    const rapt_block_list *blocks = blocks_of(task);
    const int64_t tokens = blocks->key_tokens, first = begin / tokens, last = (end - 1) / tokens;
    struct entries entries = entries_from(task, entries_of(task, query / blocks->query_tokens), first);
    memset(bytes, 0, (size_t)(end - begin));
    for (; entries.at < entries.end; entries.at++) {
        const int64_t block = rapt_index_at(blocks->entries, entries.at);
        if (block > last)
            break;
        if (block < first)
            continue;
        const int64_t from = block == first ? begin : block * tokens;
        const int64_t to = block == last ? end : (block + 1) * tokens;
        memset(bytes + (from - begin), 1, (size_t)(to - from));
    }
}

/* ---- trees */

/* The stored key of bit 0 of a tree mask; negative if the sequence is shorter than the tree. */
static int64_t tree_begin(const struct rapt_task *task) {
    return task->work.sequence.kv_length - task->plan->desc.tree_tokens;
}

static bool reaches_tree(const struct rapt_task *task, int64_t end) {
    return task->plan->desc.tree_tokens > 0 && end > tree_begin(task);
}

/* Clears the bytes of the stored keys [begin, end) that the tree of a query excludes. */
static void prune(const struct rapt_task *task, int64_t query, int64_t begin, int64_t end, uint8_t *bytes) {
    const rapt_attention_desc *desc = &task->plan->desc;
    const int64_t first =
        desc->query_offsets.data ? task->work.sequence.query_first : task->work.batch * desc->query_length;
    const uint64_t mask = (uint64_t)rapt_index_at(desc->tree_masks, first + query);
    const int64_t root = tree_begin(task);
    for (int64_t key = root > begin ? root : begin; key < end; key++)
        if (!(mask >> (key - root) & 1))
            bytes[key - begin] = 0;
}

/* ---- both */

bool rapt_selects_among(const struct rapt_task *task, struct rapt_span keys) {
    return has_blocks(task) || reaches_tree(task, keys.end - task->work.sequence.key_position);
}

bool rapt_selects_alike(const struct rapt_task *task, int64_t query, int64_t other, struct rapt_span keys) {
    if (query == other)
        return true;
    if (reaches_tree(task, keys.end - task->work.sequence.key_position))
        return false;
    return !has_blocks(task) || query / blocks_of(task)->query_tokens == other / blocks_of(task)->query_tokens;
}

void rapt_select(const struct rapt_task *task, int64_t query, int64_t base, struct rapt_span keys, uint8_t *bytes) {
    const int64_t first = task->work.sequence.key_position, begin = keys.begin - first, end = keys.end - first;
    RAPT_ASSUME(begin >= 0 && begin < end && end <= task->work.sequence.kv_length);
    bytes += keys.begin - base;
    if (has_blocks(task))
        select_listed(task, query, begin, end, bytes);
    else
        memset(bytes, 1, (size_t)(end - begin));
    if (reaches_tree(task, end))
        prune(task, query, begin, end, bytes);
}

/* The first stored key of [begin, end) that a list names; end = none. */
static int64_t next_listed(const struct rapt_task *task, int64_t query_block, int64_t begin, int64_t end) {
    const int64_t tokens = blocks_of(task)->key_tokens;
    const struct entries entries = entries_from(task, entries_of(task, query_block), begin / tokens);
    if (entries.at == entries.end)
        return end;
    const int64_t block = rapt_index_at(blocks_of(task)->entries, entries.at);
    return block <= begin / tokens ? begin : block > (end - 1) / tokens ? end : block * tokens;
}

int64_t rapt_next_listed(const struct rapt_task *task, struct rapt_span visible, int64_t base) {
    const int64_t block = rapt_next_block(visible, base), first = task->work.sequence.key_position;
    if (block < 0)
        return block;
    const int64_t group = task->plan->group, tokens = blocks_of(task)->query_tokens;
    const int64_t last = (task->first_row + task->rows - 1) / group / tokens, end = visible.end - first;
    const int64_t begin = rapt_block_of(visible, block).begin - first;
    int64_t next = end;
    for (int64_t list = task->first_row / group / tokens; list <= last && next > begin; list++)
        next = next_listed(task, list, begin, next);
    return next < end ? (first + next) / RAPT_BLOCK_KEYS * RAPT_BLOCK_KEYS : -1;
}
