/* SPDX-License-Identifier: MIT
 * The keys and values of a task in the form that slots take: rows at one stride, in a format that the tile kind reads
 * as stored. Others are staged: the table's slot converts them to float32. */
#ifndef RAPT_SOURCE_H
#define RAPT_SOURCE_H

#include "attend/task.h"

/* Some positions, staged. */
struct rapt_staging_buffer {
    struct rapt_span keys;
    struct rapt_staging staging;
    unsigned found; /* packed: RAPT_FOUND_... */
};

enum { RAPT_STRANDS = 16 }; /* interleaved at most */

/* Where the keys or values of a block lie, and what to prefetch beside them: pages or single keys. */
struct rapt_paged_block {
    struct rapt_stored_run run[RAPT_BLOCK_KEYS + 1];
    const char *strand[RAPT_BLOCK_KEYS + RAPT_STRANDS];
    struct rapt_strands ahead;
};

/* The keys of a later block that are likely to be selected, by place; none if nobody looked. */
struct rapt_expected {
    int64_t base;
    int count;
    uint8_t place[RAPT_BLOCK_KEYS];
};

struct rapt_source {
    const struct rapt_task *task; /* whose keys and values these are */
    struct rapt_span visible; /* all positions that will be read */
    bool shares_keys;         /* values are a view of staged keys */
    bool in_turns;            /* rows are for turns, which prefetch what comes next by themselves */
    struct rapt_source_side {
        int64_t dim;
        bool staged;
        bool in_pages; /* and read in place, by slots that take several runs at once */
        int here; /* the buffer of the current block; the other one is for the next block */
        struct rapt_staging_buffer buffer[RAPT_STAGING_BUFFERS];
    } side[RAPT_SIDES];
    struct rapt_paged_block block[RAPT_SIDES];
    struct rapt_expected expected;
};

/* Rows at one stride, from a position on. With runs, `first` rows lie at base and the others in runs (kernels.h). */
struct rapt_rows {
    const char *base;
    int64_t first;
    const struct rapt_stored_run *runs;
    const struct rapt_strands *ahead;
    int64_t stride_bytes, count;
    int format;
    bool streams; /* memory limits their reader, and lead_bytes says where the next rows are */
    int64_t lead_bytes; /* as in rapt_stage_args */
    struct rapt_scales scales; /* of stored rows */
};

/* Gives score its next keys, from number `key` of the block on. */
static inline void rapt_take_keys(struct rapt_score_args *args, const struct rapt_rows *keys, int key) {
    args->key = keys->base;
    args->key_stride_bytes = keys->stride_bytes;
    args->key_format = keys->format;
    args->scales = keys->scales;
    args->streams = keys->streams;
    args->lead_bytes = keys->lead_bytes;
    args->key_rows = keys->first;
    args->runs = keys->runs;
    args->ahead = keys->ahead;
    args->key_begin = key;
    args->key_end = key + (int)keys->count;
}

void rapt_source_open(struct rapt_source *source, const struct rapt_task *task, struct rapt_span visible);

/* To another KV head of the same keys, read in place. */
static inline void rapt_source_set_head(struct rapt_source *source, const struct rapt_task *task) {
    source->task = task;
}

/* Keys or values from positions.begin on, at least one and within positions, which lie in one block. Valid until the
 * next call for this side. */
struct rapt_rows rapt_source_rows(struct rapt_source *source, int side, struct rapt_span positions);

/* The same for keys from `key` on, before `end`, as a mask numbers the keys of the block at base. Scattered ones come
 * in runs if the kind takes these, else they are copied. */
struct rapt_rows rapt_source_selected(struct rapt_source *source, int side, int64_t base,
                                      const struct rapt_tile_mask *mask, int key, int end);

static inline struct rapt_rows rapt_source_numbered(struct rapt_source *source, int side, int64_t base,
                                                    const struct rapt_tile_mask *mask, int key, int end) {
    return mask->selected ? rapt_source_selected(source, side, base, mask, key, end)
                          : rapt_source_rows(source, side, (struct rapt_span){base + key, base + end});
}

/* Keys or values of half a block, packed for the task's kind. */
struct rapt_packed {
    const void *base;
    unsigned found; /* RAPT_FOUND_... */
};

/* The half at positions [base, base + RAPT_HALF_KEYS), as far as any row of the task sees it; ASSUME some row does.
 * Valid until the same half of another block is requested. */
struct rapt_packed rapt_source_packed(struct rapt_source *source, int side, int64_t base);

/* Where rows of the block `next` can be staged while the one at base is computed; NULL = they are not staged ahead. */
struct rapt_staging *rapt_source_ahead(struct rapt_source *source, int side, int64_t base, int64_t next);

/* Converts stored rows of a side to float32 rows, or copies them. */
void rapt_source_stage(const struct rapt_source *source, int side, const struct rapt_rows *rows, float *into);

/* source_stored.c: stored rows of a task, as they lie in memory. */
struct rapt_rows rapt_source_stored(const struct rapt_task *task, int side, struct rapt_span positions);

/* Where each of these rows lies. */
void rapt_source_find(const struct rapt_task *task, int side, struct rapt_span positions, const char **rows);

/* source_paged.c: all rows of some positions of a block, if pages are read in place. */
struct rapt_rows rapt_source_paged(struct rapt_source *source, int side, struct rapt_span positions);

/* The runs of some stored rows, at the tensor's stride, and a sentinel that is never read: room for one more than there
 * are positions is enough. */
void rapt_source_runs(const struct rapt_task *task, int side, struct rapt_span positions, struct rapt_stored_run *run);

/* Sets what to prefetch: the first `count` of the block's strands, of so many bytes each. Repeats the last one until
 * count is a multiple of beside. pace: as in rapt_strands. */
void rapt_source_close_strands(struct rapt_paged_block *block, int count, int64_t bytes, int pace);

#endif
