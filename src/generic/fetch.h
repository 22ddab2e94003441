/* SPDX-License-Identifier: MIT
 * Rows that set out while something else is computed. */
#ifndef RAPT_GENERIC_FETCH_H
#define RAPT_GENERIC_FETCH_H

#include "kernels.h"

/* Some lines of a list, which may be NULL. More than a dozen at once would hold up the loads around them. */
RAPT_INLINE void fetch_lines(struct rapt_fetch_list *list, int64_t lines) {
    for (int64_t line = 0; list && line < lines && list->row < list->count; line++) {
        __builtin_prefetch(list->rows[list->row] + list->byte, 0, 2);
        list->byte += 64;
        if (list->byte >= list->bytes[list->row])
            list->byte = 0, list->row++;
    }
}

#endif
