/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

enum { MAX_STAGED = 4 };

static struct { char *temporary, *target; } staged[MAX_STAGED];
static int staged_count;

static void discard(void) {
    for (int i = 0; i < staged_count; i++) {
        if (staged[i].temporary) unlink(staged[i].temporary);
    }
}

static bool is_special(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* mkstemp's files are private; a result is as readable as any other file of the user. */
static void give_usual_mode(int descriptor) {
    mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(descriptor, 0666 & ~mask);
}

/* A descriptor of a file beside path that is removed at exit until it is committed. */
static int open_temporary(const char *path) {
    if (staged_count == 0 && atexit(discard) != 0) tool_die("%s: no exit handler to be had", path);
    char *resolved = realpath(path, NULL);
    const char *target = resolved ? resolved : path;
    size_t length = strlen(target);
    staged[staged_count].target = memcpy(tool_allocate((int64_t)length, 1, path), target, length);
    char *temporary = tool_allocate((int64_t)length + 8, 1, path);
    memcpy(temporary, target, length);
    memcpy(temporary + length, ".XXXXXX", 8);
    free(resolved);
    int descriptor = mkstemp(temporary);
    if (descriptor < 0) tool_die("%s: cannot be written: %s", path, strerror(errno));
    staged[staged_count++].temporary = temporary;
    give_usual_mode(descriptor);
    return descriptor;
}

/* Two parts one after the other, as a header and its data are. */
struct part {
    const void *bytes;
    size_t count;
};

static bool write_parts(FILE *file, const struct part parts[2], bool special) {
    for (int i = 0; i < 2; i++) {
        if (fwrite(parts[i].bytes, 1, parts[i].count, file) != parts[i].count) return false;
    }
    return fflush(file) == 0 && (special || fsync(fileno(file)) == 0);
}

static void stage(const char *path, const struct part parts[2]) {
    bool special = is_special(path);
    FILE *file = special ? fopen(path, "wb") : fdopen(open_temporary(path), "wb");
    if (file == NULL) tool_die("%s: cannot be written: %s", path, strerror(errno));
    bool written = write_parts(file, parts, special);
    int reason = errno;
    if (fclose(file) != 0 && written) {
        written = false;
        reason = errno;
    }
    if (!written) tool_die("%s: cannot be written: %s", path, strerror(reason));
}

void output_stage(const struct npy_array *array) {
    char header[256];
    size_t header_bytes = (size_t)npy_header(header, array->type, array->dims, array->shape);
    stage(array->path, (const struct part[]){{header, header_bytes},
                                             {array->data, (size_t)array->count * sizeof(float)}});
}

void output_stage_bytes(const char *path, const void *bytes, size_t count) {
    stage(path, (const struct part[]){{bytes, count}, {"", 0}});
}

void output_commit(void) {
    for (int i = 0; i < staged_count; i++) {
        if (rename(staged[i].temporary, staged[i].target) != 0) {
            tool_die("%s: cannot be written: %s", staged[i].target, strerror(errno));
        }
        staged[i].temporary = NULL;
    }
}
