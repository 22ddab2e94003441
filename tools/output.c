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

static bool write_array(FILE *file, const struct npy_array *array, bool special) {
    char header[256];
    size_t header_bytes = (size_t)npy_header(header, array->type, array->dims, array->shape);
    size_t data_bytes = (size_t)array->count * sizeof(float);
    bool written = fwrite(header, 1, header_bytes, file) == header_bytes &&
                   fwrite(array->data, 1, data_bytes, file) == data_bytes && fflush(file) == 0;
    return written && (special || fsync(fileno(file)) == 0);
}

void output_stage(const struct npy_array *array) {
    bool special = is_special(array->path);
    FILE *file = special ? fopen(array->path, "wb") : fdopen(open_temporary(array->path), "wb");
    if (file == NULL) tool_die("%s: cannot be written: %s", array->path, strerror(errno));
    bool written = write_array(file, array, special);
    int reason = errno;
    if (fclose(file) != 0 && written) {
        written = false;
        reason = errno;
    }
    if (!written) tool_die("%s: cannot be written: %s", array->path, strerror(reason));
}

void output_commit(void) {
    for (int i = 0; i < staged_count; i++) {
        if (rename(staged[i].temporary, staged[i].target) != 0) {
            tool_die("%s: cannot be written: %s", staged[i].target, strerror(errno));
        }
        staged[i].temporary = NULL;
    }
}
