/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "guarded.h"

int64_t fuzz_refused, fuzz_taken;

void fuzz_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("fuzz: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

static void *owned(void *memory) {
    if (!memory)
        fuzz_fail("out of memory");
    return memory;
}

struct region region_new(size_t bytes) {
    struct guarded *memory = owned(malloc(sizeof *memory));
    *memory = guarded_new(bytes, GUARD_END, 0, 0);
    return (struct region){memory->data, bytes, memory};
}

void region_free(struct region *region) {
    struct guarded *memory = region->owner;
    if (!guarded_is_clean(memory))
        fuzz_fail("bytes before a region of %zu were written", region->bytes);
    guarded_free(memory);
    free(memory);
}
