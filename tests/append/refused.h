/* SPDX-License-Identifier: MIT
 * Calls that are refused with a status and a field's name, and write nothing; or legal ones. */
#ifndef RAPT_TESTS_APPEND_REFUSED_H
#define RAPT_TESTS_APPEND_REFUSED_H

#include "append/legal.h"
#include "support/cmocka_all.h"
#include "support/support.h"

static inline bool is_untouched(void) {
    for (int i = 0; i < ROOM; i++)
        if (bits_of(key_cache[i]) != UINT32_MAX || bits_of(value_cache[i]) != UINT32_MAX ||
            bits_of(out[i]) != UINT32_MAX || bits_of(scales[i]) != UINT32_MAX || zero_points[i] != -1)
            return false;
    return true;
}

static int wrong_rows;

static inline void expect(rapt_status status, rapt_status expected, const rapt_message *message, const char *text,
                          int line) {
    const bool refused = expected != RAPT_OK;
    if (status == expected && (!refused || (strstr(message->text, text) && is_untouched())))
        return;
    print_error("line %d: status %d, message \"%s\", %s\n", line, (int)status, message->text,
                is_untouched() ? "nothing written" : "something written");
    wrong_rows++;
}

#define CALLED(function, kind, make, status, text, ...)                                                                \
    do {                                                                                                               \
        rapt_##kind##_desc changed = make(), *d = &changed;                                                            \
        rapt_message message = {"?"};                                                                                  \
        __VA_ARGS__;                                                                                                   \
        expect(function(d, NULL, &message), status, &message, text, __LINE__);                                         \
    } while (0)
#define REFUSED(status, text, ...) CALLED(rapt_append, append, fresh, status, text, __VA_ARGS__)
#define LEGAL(...) CALLED(rapt_append, append, fresh, RAPT_OK, "", __VA_ARGS__)
#define ROTATE_REFUSED(status, text, ...) CALLED(rapt_rotate, rotate, fresh_rotate, status, text, __VA_ARGS__)
#define ROTATE_LEGAL(...) CALLED(rapt_rotate, rotate, fresh_rotate, RAPT_OK, "", __VA_ARGS__)

#endif
