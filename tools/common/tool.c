/* SPDX-License-Identifier: MIT */
#include "common/tool.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/memory_free.h"
#include "common/text.h"

/* One line, whatever file names and file contents put into it. */
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

static char **option_words;
static int option_word_count;

static struct named_file {
    const char *path, *option;
    struct named_file *next;
} *named_files;

void tool_set_options(int count, char **words) {
    option_word_count = count;
    option_words = words;
}

void tool_name_file(const char *path, const char *option) {
    struct named_file *file = tool_allocate(1, sizeof *file, "a name");
    *file = (struct named_file){path, option, named_files};
    named_files = file;
}

/* A value is a separate word, or follows the option's name and '=' in the same word. */
const char *tool_option_of(const char *path) {
    for (const struct named_file *file = named_files; file; file = file->next) {
        if (file->path == path) return file->option;
    }
    for (int i = 1; i < option_word_count; i++) {
        const char *word = option_words[i];
        if (word == path) return option_words[i - 1];
        if (path < word || path > word + strlen(word)) continue;
        char *option = tool_allocate(path - word, 1, "a name");
        return memcpy(option, word, (size_t)(path - word) - 1);
    }
    return NULL;
}

const char *tool_file(const char *path) {
    const char *option = tool_option_of(path);
    if (!option) return path;
    const size_t bytes = strlen(option) + strlen(path) + sizeof ": ";
    char *text = tool_allocate((int64_t)bytes, 1, "a name");
    snprintf(text, bytes, "%s: %s", option, path);
    return text;
}

void tool_check_name(const char *path) {
    const char *option = tool_option_of(path);
    if (!path[0]) tool_die("%s%s", option ? option : "a file", option ? ": the name is empty" : " has an empty name");
}

void tool_die_of_file(const char *path, int reason) {
    tool_die("%s: %s", tool_file(path), strerror(reason));
}

static struct noted_file {
    const char *path;
    dev_t device;
    ino_t inode;
    bool is_result;
    struct noted_file *next;
} *noted_files;

static _Noreturn void refuse_both(const char *result, const char *input) {
    const char *option = tool_option_of(input);
    const bool same_name = option && strcmp(result, input) == 0;
    tool_die("%s is also %s%s%s", tool_file(result), option ? option : "", same_name || !option ? "" : " ",
             same_name ? "" : input);
}

/* Devices and pipes are not replaced. */
void tool_note_file(const char *path, const struct stat *status, bool is_result) {
    if (!S_ISREG(status->st_mode)) return;
    for (const struct noted_file *file = noted_files; file; file = file->next) {
        if (file->is_result != is_result && file->device == status->st_dev && file->inode == status->st_ino)
            refuse_both(is_result ? path : file->path, is_result ? file->path : path);
    }
    struct noted_file *file = tool_allocate(1, sizeof *file, "a name");
    *file = (struct noted_file){path, status->st_dev, status->st_ino, is_result, noted_files};
    noted_files = file;
}

FILE *tool_open(const char *path) {
    struct stat status;
    tool_check_name(path);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &status) != 0) tool_die_of_file(path, errno);
    tool_note_file(path, &status, false);
    return file;
}

/* The reader of standard output has seen enough. */
static bool reader_left(void) {
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP));
}

void tool_flush(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    const int reason = errno;
    if (!reader_left()) tool_die("standard output: %s", strerror(reason));
}

/* Links all blocks, so that leak checkers find them reachable. */
union block {
    union block *next;
    char keeps_alignment[64];
};
static union block *blocks;

/* Counts bytes; dies if more than are free. Small requests do not ask the system. */
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
