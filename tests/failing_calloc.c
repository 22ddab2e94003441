/* SPDX-License-Identifier: MIT
 * Linked into the command with --wrap=calloc: the n-th allocation fails, n from RAPT_TEST_FAIL_ALLOCATION. */
#include <stdlib.h>

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
    static long calls;
    const char *fails = getenv("RAPT_TEST_FAIL_ALLOCATION");
    calls++;
    return fails && strtol(fails, NULL, 10) == calls ? NULL : __real_calloc(count, size);
}
