/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/cmocka_all.h"

/* Replaces cmocka's, which up to 1.1.5 prints "not ok" for a skipped test, a failure to Meson. From 2.0 on it prints
 * the version of TAP, which Meson takes on the first line only, but some programs print others before. */
void print_message(const char *const format, ...) {
    va_list rest;
    if (strncmp(format, "TAP version", 11) == 0)
        return;
    va_start(rest, format);
    vprintf(strncmp(format, "not ok %u # SKIP", 16) == 0 ? format + 4 : format, rest);
    va_end(rest);
    fflush(stdout);
}
