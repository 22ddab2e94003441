/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "memory.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t huge_page = (size_t)2 << 20;

static void prefer_huge_pages(void *data, size_t bytes) {
#ifdef MADV_HUGEPAGE
    madvise(data, bytes, MADV_HUGEPAGE);
#else
    (void)data, (void)bytes;
#endif
}

static size_t rounded(size_t bytes) {
    size_t alignment = bytes >= huge_page ? huge_page : 64;
    return bytes ? (bytes + alignment - 1) / alignment * alignment : alignment;
}

void *buffer_reserve(size_t bytes) {
    void *buffer = NULL;
    if (posix_memalign(&buffer, bytes >= huge_page ? huge_page : 64, rounded(bytes)) != 0) {
        fprintf(stderr, "rapt: no memory for %zu bytes\n", bytes);
        exit(2);
    }
    prefer_huge_pages(buffer, rounded(bytes));
    return buffer;
}

void *buffer_new(size_t bytes) {
    return memset(buffer_reserve(bytes), 0, rounded(bytes));
}

void buffer_free(void *buffer) {
    free(buffer);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Normal: the sum of eight uniform 16-bit numbers, variance 1. */
static float next_normal(uint64_t *state) {
    int64_t sum = 0;
    for (int word = 0; word < 2; word++) {
        uint64_t bits = next_random(state);
        for (int i = 0; i < 4; i++)
            sum += (int64_t)(bits >> (16 * i) & 0xffff) - 0x8000;
    }
    return (float)sum * (float)(1 / 53509.9);
}

/* The upper half of such a float is a finite float16, too, and, with a bit cleared, two finite float8 numbers. The
 * lower half repeats it, so that memory holds numbers for rows of each type. */
static float with_equal_halves(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits &= 0xffbf0000;
    bits |= bits >> 16;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* 16 MiB of numbers, repeated: they do not affect speed, but take time to make. */
static void fill(float *data, size_t count) {
    const size_t period = (size_t)4 << 20;
    uint64_t state = 1;
    for (size_t i = 0; i < count && i < period; i++)
        data[i] = with_equal_halves(next_normal(&state));
    for (size_t i = period; i < count; i += period)
        memcpy(data + i, data, (count - i < period ? count - i : period) * sizeof *data);
}

bool arena_init(struct arena *arena) {
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    size_t quarter = pages > 0 ? (size_t)pages / 4 * (size_t)page_bytes : (size_t)1 << 30;
    arena->bytes = (size_t)1 << 30;
    while (arena->bytes > quarter)
        arena->bytes /= 2;
    void *base = NULL;
    if (posix_memalign(&base, huge_page, arena->bytes) != 0)
        return false;
    prefer_huge_pages(base, arena->bytes);
    arena->base = base;
    fill(base, arena->bytes / sizeof(float));
    return true;
}

void arena_free(struct arena *arena) {
    free(arena->base);
}

/* KiB of this process in transparent huge pages; -1 if unknown. */
static long huge_kib(void) {
    long kib = -1;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %ld kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

void arena_describe(const struct arena *arena, char *text, size_t text_bytes) {
    size_t mib = arena->bytes >> 20;
    long huge_mib = huge_kib() / 1024;
    if (huge_kib() < 0)
        snprintf(text, text_bytes, "%zu MiB, the system does not tell about huge pages", mib);
    else
        snprintf(text, text_bytes, "%ld of %zu MiB in huge pages",
                 huge_mib < (long)mib ? huge_mib : (long)mib, mib);
}
