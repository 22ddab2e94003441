/* SPDX-License-Identifier: MIT
 * Calls of layers, each good but for one thing. */
#ifndef RAPT_TESTS_LAYERS_REFUSED_H
#define RAPT_TESTS_LAYERS_REFUSED_H

#include "layers/drawn.h"

static inline void said(rapt_status got, rapt_status expected, const char *text, int line) {
    if (got != expected || !strstr(message.text, text))
        fail_msg("line %d: %s: '%s'", line, rapt_status_text(got), message.text);
}

/* Misaligned. */
static inline float *odd(const float *numbers) { return (float *)((uintptr_t)numbers + 1); }

#define OTHER(function, good, status, text, ...)                                                                    \
    do {                                                                                                            \
        rapt_attention_desc how = good_how;                                                                         \
        __typeof__(good) layer = good, *d = &layer;                                                                 \
        layer.attention = &how;                                                                                     \
        __VA_ARGS__;                                                                                                \
        (void)d;                                                                                                    \
        said(function(&layer, NULL, &message), status, text, __LINE__);                                             \
    } while (0)

#endif
