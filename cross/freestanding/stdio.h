/* SPDX-License-Identifier: MIT
 * Declarations only: ./dev arm compiles for systems whose SDK is not there. */
#include <stdarg.h>
#include <stddef.h>
int snprintf(char *text, size_t bytes, const char *format, ...);
int vsnprintf(char *text, size_t bytes, const char *format, va_list values);
