/* SPDX-License-Identifier: MIT
 * Known-answer tests of order 2's arithmetic. A unit that fails one is not used, and chains of FMAs take its place. */
#ifndef RAPT_X86_UNIT16_KNOWN_ANSWERS_H
#define RAPT_X86_UNIT16_KNOWN_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "x86/unit16/pack.h"

/* c plus the products of up to 3 terms of a step, as bits of float32 and of the numbers. */
static const struct unit16_known_answer {
    uint32_t c;
    struct {
        uint8_t term;
        uint16_t a, b;
    } product[3];
    uint32_t answer;
} unit16_known_answers[] = {
#if UNIT16_IS_F16
    {0x3f800000, {{0, 0x0001, 0x3c00}, {1, 0x0001, 0x3c00}}, 0x3f800001}, /* both chains meet before c */
    {0, {{0, 0x0001, 0x3c00}, {2, 0x0001, 0x3c00}, {4, 0x3c00, 0x3c00}}, 0x3f800001}, /* terms ascend */
    {0x3f800000, {{0, 0x0001, 0x3c00}, {2, 0x0001, 0x3c00}}, 0x3f800001}, /* a chain does not begin at c */
    {0, {{0, 0x0001, 0x3c00}, {1, 0x3c00, 0x3c00}, {2, 0x0001, 0x3c00}}, 0x3f800001}, /* there are two chains */
    {0, {{0, 0x3c00, 0x3c00}, {2, 0x0001, 0x3c00}}, 0x3f800000}, /* ties go to even */
    {0, {{0, 0x3c00, 0x3c00}, {2, 0x0001, 0x3c01}}, 0x3f800001}, /* sums are rounded to the nearest */
    {0, {{0, 0x3c01, 0x3c01}}, 0x3f804008},                      /* products are exact */
    {0, {{0, 0x0001, 0x8001}}, 0xa7800000},                      /* denormal numbers count */
    {0x007fffff, {{0, 0x0001, 0x0001}}, 0x27800000},             /* but as c they do not */
    {0x807fffff, {{0, 0, 0}}, 0x00000000}
#else
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
#endif
};

static inline bool unit16_passes(uint32_t (*answer)(const struct unit16_known_answer *question)) {
    bool right = true;
    for (size_t i = 0; i < sizeof unit16_known_answers / sizeof *unit16_known_answers; i++)
        right = right && answer(&unit16_known_answers[i]) == unit16_known_answers[i].answer;
    return right;
}

#endif
