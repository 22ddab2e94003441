/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/guarded.h"

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

/* Reuses regions of equal size: mapping and clearing one takes the system ten times as long as the calls. The system
 * reuses addresses, too: a pointer that outlives its input faults neither way. */
enum { KEPT = 32, MOST_KEPT_BYTES = 1 << 16 };
static struct guarded *kept[KEPT];

static struct guarded *kept_of(size_t bytes) {
    for (int i = 0; i < KEPT; i++)
        if (kept[i] && kept[i]->bytes == bytes) {
            struct guarded *memory = kept[i];
            kept[i] = NULL;
            memset(memory->data, 0, bytes);
            return memory;
        }
    return NULL;
}

struct region region_new(size_t bytes) {
    struct guarded *memory = kept_of(bytes);
    if (!memory) {
        memory = owned(malloc(sizeof *memory));
        *memory = guarded_new(bytes, GUARD_END, 0, 0);
    }
    return (struct region){memory->data, bytes, memory};
}

void region_free(struct region *region) {
    static int next;
    struct guarded *memory = region->owner;
    if (!guarded_is_clean(memory))
        fuzz_fail("bytes before a region of %zu were written", region->bytes);
    if (memory->bytes <= MOST_KEPT_BYTES) {
        struct guarded *oldest = kept[next];
        kept[next] = memory;
        next = (next + 1) % KEPT;
        memory = oldest;
    }
    if (memory) {
        guarded_free(memory);
        free(memory);
    }
}
