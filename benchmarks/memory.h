/* SPDX-License-Identifier: MIT
 *
 * The data of all rows: one arena of random numbers, far larger than any cache, whether read as float32 or as float16.
 * Rows lie in it, and so does what the stream peak reads. */
#ifndef RAPT_BENCHMARKS_MEMORY_H
#define RAPT_BENCHMARKS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct arena {
    char *base;
    size_t bytes; /* a power of two */
};

/* Regions of so many bytes that are read in turn: their cursor wraps after the last. */
enum { ARENA_MAX_REGIONS = 64 };
static inline size_t arena_regions(const struct arena *arena, size_t region_bytes) {
    const size_t regions = arena->bytes / region_bytes;
    return regions < ARENA_MAX_REGIONS ? regions : ARENA_MAX_REGIONS;
}

/* Uses huge pages if available. Returns false on failure. */
bool arena_init(struct arena *arena);
void arena_free(struct arena *arena);

/* "1024 of 1024 MiB in huge pages", or why there are none. */
void arena_describe(const struct arena *arena, char *text, size_t text_bytes);

/* Zeroed, aligned to 64 bytes, in huge pages if large; exits if memory is short. Freed by buffer_free. */
void *buffer_new(size_t bytes);

/* The same, uninitialised; takes no memory where nothing is written. */
void *buffer_reserve(size_t bytes);
void buffer_free(void *buffer);

#endif
