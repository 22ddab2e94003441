/* SPDX-License-Identifier: MIT */
#include "tool.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory_free.h"
#include "text.h"

/* One line, whatever names of files and what is read from files put into it. */
static void print_line(const char *prefix, const char *format, va_list arguments) {
    char text[8192];
    vsnprintf(text, sizeof text, format, arguments);
    fflush(stdout);
    fputs(prefix, stderr);
    text_write(stderr, text);
    fputc('\n', stderr);
}

void tool_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("rapt: ", format, arguments);
    va_end(arguments);
    exit(TOOL_EXIT_ERROR);
}

void tool_warn(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line("rapt: warning: ", format, arguments);
    va_end(arguments);
}

/* Whoever read standard output has seen enough. */
static bool reader_left(void) {
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP));
}

void tool_flush(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    const int reason = errno;
    if (!reader_left()) tool_die("standard output: %s", strerror(reason));
}

/* A list of all blocks, so that whatever is not freed is still reachable when a leak checker looks. */
union block {
    union block *next;
    char keeps_alignment[64];
};
static union block *blocks;

/* Counts bytes; dies where they are more than are free. Small requests do not ask the system. */
static void account(uint64_t bytes, const char *what) {
    enum { SMALL = 1 << 24 };
    static uint64_t used, most = UINT64_MAX;
    static bool asked;
    if (bytes > SMALL && !asked) {
        asked = true;
        most = used + (uint64_t)memory_free();
    }
    if (bytes > SMALL && (used > most || bytes > most - used))
        tool_die("out of memory: %s needs %llu bytes, %llu are free", what, (unsigned long long)bytes,
                 (unsigned long long)(used > most ? 0 : most - used));
    used += bytes;
}

void *tool_allocate(int64_t count, size_t size, const char *what) {
    bool fits = (uint64_t)count <= (SIZE_MAX - sizeof(union block) - 1) / size;
    if (fits) account((uint64_t)count * size, what);
    /* A byte more, so that empty arrays are not absent. */
    union block *block = fits ? calloc(1, sizeof *block + (size_t)count * size + 1) : NULL;
    if (block == NULL) tool_die("out of memory: %s needs %.0f bytes", what, (double)count * (double)size);
    block->next = blocks;
    blocks = block;
    return block + 1;
}

int64_t tool_product(int64_t a, int64_t b, const char *what) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) tool_die("%s: its size overflows 64 bits", what);
    return product;
}
