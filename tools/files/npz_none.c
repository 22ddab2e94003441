/* SPDX-License-Identifier: MIT
 * Replaces npz.c in builds without libzip. */
#include <string.h>
#include <unistd.h>

#include "common/tool.h"
#include "files/npz.h"

bool npz_has(const char *path) {
    tool_die("%s: this rapt was built without .npz archives: it needs libzip (Debian: libzip-dev)", path);
}

FILE *npz_open(const char *path) {
    if (strstr(path, ".npz:") && access(path, F_OK) != 0) npz_has(path);
    return NULL;
}

void npz_refuse_archive(const char *path) {
    (void)path;
}
