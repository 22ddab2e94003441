/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/cmocka_all.h"

/* Replaces cmocka's, which up to 1.1.5 prints "not ok" for a skipped test, a failure to Meson. */
void print_message(const char *const format, ...) {
    va_list rest;
    va_start(rest, format);
    vprintf(strncmp(format, "not ok %u # SKIP", 16) == 0 ? format + 4 : format, rest);
    va_end(rest);
    fflush(stdout);
}
