/* SPDX-License-Identifier: MIT
 * Whether the matrix unit may be used, and computes as order 2 says: questions to which wrong arithmetic has wrong
 * answers. A unit that misses one is not used, and chains of FMAs take its place. */
#ifndef RAPT_X86_AMX_ANSWERS_H
#define RAPT_X86_AMX_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu.h"
#include "x86/amx/kind.h"
#include "x86/amx/tiles.h"

/* c plus the products of up to 3 terms of a step, as bits of float32 and bfloat16. */
static const struct amx_question {
    uint32_t c;
    struct {
        uint8_t term;
        uint16_t a, b;
    } product[3];
    uint32_t answer;
} amx_questions[] = {
    {0x3f800000, {{0, 0x3380, 0x3f80}, {1, 0x3380, 0x3f80}}, 0x3f800001}, /* both chains meet before c */
    {0, {{0, 0x3380, 0x3f80}, {2, 0x3380, 0x3f80}, {4, 0x3f80, 0x3f80}}, 0x3f800001}, /* terms ascend */
    {0x3f800000, {{0, 0x3380, 0x3f80}, {2, 0x3380, 0x3f80}}, 0x3f800001}, /* a chain does not begin at c */
    {0, {{0, 0x3380, 0x3f80}, {1, 0x3f80, 0x3f80}, {2, 0x3380, 0x3f80}}, 0x3f800001}, /* there are two chains */
    {0, {{0, 0x3f80, 0x3f80}, {2, 0x3380, 0x3f80}}, 0x3f800000}, /* ties go to even */
    {0, {{0, 0x3f80, 0x3f80}, {2, 0x3f81, 0x3381}}, 0x3f800001}, /* one rounding */
    {0, {{0, 0x7f00, 0xbf80}, {2, 0x5f80, 0x5f80}}, 0x7f000000}, /* products are not rounded */
    {0, {{0, 0x0080, 0x3f80}, {2, 0xb300, 0x0080}}, 0x00800000}, /* what is tiny shows after rounding */
    {0, {{0, 0x0080, 0x3f80}, {2, 0xb301, 0x0080}}, 0x00000000}, /* to 24 bits; then it is flushed */
    {0, {{0, 0x0080, 0x3f00}, {2, 0x0080, 0x3f00}}, 0x00000000}, /* at each step */
    {0, {{0, 0x0001, 0x7f00}}, 0x00000000},                      /* denormal numbers count as zeros */
    {0x007fffff, {{0, 0x0080, 0x3f80}}, 0x00800000},             /* as c, too */
    {0x80c00000, {{0, 0x0080, 0x3f80}}, 0x80000000}              /* a flushed sum keeps its sign */
};

/* In row 3 and column 5 of a product. */
static uint32_t amx_answer(const struct amx_question *q) {
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
    TILE_MULTIPLY_BF16(0, 1, 2);
    TILE_STORE(0, c, TILE_ROW_BYTES);
    return c[ROW][COLUMN];
}

static bool amx_is_usable(void) {
    struct tile_config before;
    const struct tile_config whole = tiles_whole();
    bool right = true;
    if (!rapt_cpu_permits_tiles())
        return false;
    tiles_store_config(&before);
    tiles_load_config(&whole);
    for (size_t i = 0; i < sizeof amx_questions / sizeof *amx_questions; i++)
        right = right && amx_answer(&amx_questions[i]) == amx_questions[i].answer;
    tiles_restore(&before);
    return right;
}

#endif
