/* SPDX-License-Identifier: MIT */
#include "attend/widen.h"

#include "assume.h"

void rapt_widen(const struct rapt_widening *w, char *const *stored, const float **rows) {
    const int64_t skipped = rapt_format_row_bytes(w->format, w->begin);
    RAPT_ASSUME(w->rows >= 1 && w->begin >= 0 && w->begin < w->end && w->room_stride >= w->end);
    for (int row = 0; w->format == RAPT_FORMAT_F32 && row < w->rows; row++)
        rows[row] = (const float *)(const void *)stored[row];
    for (int row = 0; w->format != RAPT_FORMAT_F32 && row < w->rows; row++) {
        if (row > 0 && stored[row] == stored[row - 1]) {
            rows[row] = rows[row - 1];
        } else {
            float *into = w->room + row * w->room_stride;
            const struct rapt_stage_args args = {.into = into + w->begin,
                                                 .from = (const char *)((uintptr_t)stored[row] + (uintptr_t)skipped),
                                                 .rows = 1,
                                                 .dim = w->end - w->begin,
                                                 .format = w->format};
            w->table->stage(&args);
            rows[row] = into;
        }
    }
}
