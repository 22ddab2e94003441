/* SPDX-License-Identifier: MIT
 * Whether VDPBF16PS, and additions that flush, compute as order 2 says. */
#ifndef RAPT_X86_BF16_ANSWERS_H
#define RAPT_X86_BF16_ANSWERS_H

#include "x86/bf16/product.h"
#include "x86/unit16/known_answers.h"

/* In row 3 and column 21 of a product. */
static uint32_t dots_answer(const struct unit16_known_answer *q) {
    enum { ROW = 3, COLUMN = 21 };
    _Alignas(64) uint16_t row[RAPT_STEP] = {0}, column[RAPT_STEP] = {0};
    _Alignas(64) uint32_t a[DOTS_ROWS][DOTS_WORDS] = {{0}}, b[DOTS_WORDS][DOTS_COLUMNS] = {{0}};
    _Alignas(64) uint32_t words[DOTS_WORDS];
    _Alignas(64) float c[DOTS_ROWS][DOTS_COLUMNS] = {{0}};
    uint32_t answer;
    for (int i = 0; i < 3; i++)
        if (q->product[i].a) {
            row[q->product[i].term] = q->product[i].a;
            column[q->product[i].term] = q->product[i].b;
        }
    _mm512_store_si512(a[ROW], dots_words(_mm512_load_si512(row)));
    _mm512_store_si512(words, dots_words(_mm512_load_si512(column)));
    for (int word = 0; word < DOTS_WORDS; word++)
        b[word][COLUMN] = words[word];
    memcpy(&c[ROW][COLUMN], &q->c, sizeof q->c);
    struct dots_product p = {
        .a = a[0], .a_stride = DOTS_WORDS, .b = b[0], .c = c[0], .c_stride = DOTS_COLUMNS, .steps = 1, .adds = true};
    unit_flush(true);
    dots_multiply(&p, DOTS_ROWS);
    unit_flush(false);
    memcpy(&answer, &c[ROW][COLUMN], sizeof answer);
    return answer;
}

/* Called before a plan has set the floating-point environment. */
static bool dots_are_usable(void) {
    const rapt_fpenv saved = rapt_fpenv_enter();
    const bool right = unit16_passes(dots_answer);
    rapt_fpenv_leave(saved);
    return right;
}

#endif
