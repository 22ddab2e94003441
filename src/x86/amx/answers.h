/* SPDX-License-Identifier: MIT
 * Whether the matrix unit may be used, and computes as order 2 says. */
#ifndef RAPT_X86_AMX_ANSWERS_H
#define RAPT_X86_AMX_ANSWERS_H

#include <stdbool.h>

#include "cpu.h"
#include "x86/amx/kind.h"
#include "x86/amx/pack.h"
#include "x86/unit16/known_answers.h"

/* In row 3 and column 5 of a product. */
static uint32_t amx_answer(const struct unit16_known_answer *q) {
    enum { ROW = 3, COLUMN = 5 };
    uint32_t c[16][16] = {{0}};
    uint16_t a[16][32] = {{0}}, b[16][16][2] = {{{0}}};
    c[ROW][COLUMN] = q->c;
    for (int i = 0; i < 3; i++) {
        const int term = q->product[i].term;
        if (q->product[i].a == 0)
            continue;
        a[ROW][term] = q->product[i].a;
        b[term / 2][COLUMN][term % 2] = q->product[i].b;
    }
    TILE_LOAD(0, c, TILE_ROW_BYTES);
    TILE_LOAD(1, a, TILE_ROW_BYTES);
    TILE_LOAD(2, b, TILE_ROW_BYTES);
    TILE_MULTIPLY(0, 1, 2);
    TILE_STORE(0, c, TILE_ROW_BYTES);
    return c[ROW][COLUMN];
}

static bool amx_is_usable(void) {
    struct tile_config before;
    const struct tile_config whole = tiles_whole();
    bool right;
    if ((UNIT16_IS_F16 && !rapt_cpu_has_amx_fp16()) || !rapt_cpu_permits_tiles())
        return false;
    tiles_store_config(&before);
    tiles_load_config(&whole);
    right = unit16_passes(amx_answer);
    tiles_restore(&before);
    return right;
}

#endif
