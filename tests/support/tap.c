/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/cmocka_all.h"

/* In the place of cmocka's, which up to 1.1.5 says "not ok" of a skipped test, so that Meson would count a failure. */
void print_message(const char *const format, ...) {
    va_list rest;
    va_start(rest, format);
    vprintf(strncmp(format, "not ok %u # SKIP", 16) == 0 ? format + 4 : format, rest);
    va_end(rest);
    fflush(stdout);
}
