/* SPDX-License-Identifier: MIT
 * Linked into the command with --wrap: allocation number RAPT_TEST_FAIL_ALLOCATION fails; so does rename number
 * RAPT_TEST_FAIL_RENAME; RAPT_TEST_FREE_MEMORY sets the free memory, RAPT_TEST_SECONDS lists the clock's readings. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/memory_free.h"
#include "measure.h"

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int64_t __real_memory_free(void);
int64_t __wrap_memory_free(void);
double __real_now_seconds(void);
double __wrap_now_seconds(void);

static bool is_turn(const char *name, long call) {
    const char *fails = getenv(name);
    return fails && strtol(fails, NULL, 10) == call;
}

void *__wrap_calloc(size_t count, size_t size) {
    static long calls;
    return is_turn("RAPT_TEST_FAIL_ALLOCATION", ++calls) ? NULL : __real_calloc(count, size);
}

int __wrap_rename(const char *from, const char *to) {
    static long calls;
    if (!is_turn("RAPT_TEST_FAIL_RENAME", ++calls)) return __real_rename(from, to);
    errno = EIO;
    return -1;
}

int64_t __wrap_memory_free(void) {
    const char *said = getenv("RAPT_TEST_FREE_MEMORY");
    return said ? strtoll(said, NULL, 10) : __real_memory_free();
}

double __wrap_now_seconds(void) {
    static char *left;
    if (!left) left = getenv("RAPT_TEST_SECONDS");
    return left ? strtod(left, &left) : __real_now_seconds();
}
