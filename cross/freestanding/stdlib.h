/* SPDX-License-Identifier: MIT
 * Declarations only: ./dev arm compiles for systems whose SDK is not there. */
#include <stddef.h>
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void free(void *memory);
char *getenv(const char *name);
