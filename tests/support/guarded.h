/* SPDX-License-Identifier: MIT
 * Memory that ends, or begins, exactly at a guard page. */
#ifndef RAPT_TESTS_GUARDED_H
#define RAPT_TESTS_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

enum guard_side { GUARD_END, GUARD_BEGIN };

struct guarded {
    char *data;
    size_t bytes;
    char *map; /* guard page, body, guard page */
    size_t map_bytes;
    size_t page;
};

/* distance: bytes between the data and the guarded side, canaries like the rest of the body; for odd addresses. All
 * bytes of data are `fill`. */
struct guarded guarded_new(size_t bytes, enum guard_side side, size_t distance, unsigned char fill);

/* From here on, writing to the data faults, too. */
void guarded_make_read_only(struct guarded *memory);

/* Whether the bytes beside the data are unchanged. */
bool guarded_is_clean(const struct guarded *memory);

void guarded_free(struct guarded *memory);

#endif
