/* SPDX-License-Identifier: MIT
 * libzip reads the archive and checks sizes and sums. */
#include "files/npz.h"

#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "common/tool.h"

static char *copy(const char *text, size_t length) {
    char *kept = tool_allocate((int64_t)length + 5, 1, "a name");
    return memcpy(kept, text, length);
}

static zip_t *open_archive(const char *path) {
    int reason = 0;
    zip_error_t error;
    struct stat status;
    if (stat(path, &status) == 0) tool_note_file(path, &status, false);
    zip_t *archive = zip_open(path, ZIP_RDONLY, &reason);
    if (archive) return archive;
    zip_error_init_with_code(&error, reason);
    tool_die("%s: %s", tool_file(path), zip_error_strerror(&error));
}

enum { NAMES_TEXT = 160 };

/* Writes as many array names as fit into names; returns it. */
static const char *names_in(zip_t *archive, char names[NAMES_TEXT]) {
    names[0] = '\0';
    for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); i++) {
        const char *has = zip_get_name(archive, (zip_uint64_t)i, 0);
        const size_t length = has ? strlen(has) : 0, used = strlen(names);
        if (!has || used + length + 3 > NAMES_TEXT) continue;
        const size_t shown = length > 4 && strcmp(has + length - 4, ".npy") == 0 ? length - 4 : length;
        snprintf(names + used, NAMES_TEXT - used, "%s%.*s", used ? ", " : "", (int)shown, has);
    }
    return names[0] ? names : "none";
}

static _Noreturn void no_member(zip_t *archive, const char *path, const char *name) {
    char names[NAMES_TEXT];
    tool_die("%s: there is no array '%s': it has %s", path, name, names_in(archive, names));
}

void npz_refuse_archive(const char *path) {
    const size_t length = strlen(path);
    const bool named_so = length > 4 && strcmp(path + length - 4, ".npz") == 0;
    char names[NAMES_TEXT];
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return; /* a pipe would be consumed */
    zip_t *archive = zip_open(path, ZIP_RDONLY, NULL);
    if (!archive) return;
    const char *has = names_in(archive, names);
    zip_discard(archive);
    tool_die("%s: is an archive: name one of its arrays, %s:NAME; it has %s", tool_file(path),
             named_so ? path : "FILE.npz", has);
}

/* After the last byte libzip checks the sum. */
static void check_end(zip_file_t *file, const char *path) {
    char more;
    const zip_int64_t got = zip_fread(file, &more, 1);
    if (got < 0) tool_die("%s: %s", path, zip_file_strerror(file));
    if (got > 0) tool_die("%s: it is longer than the archive says", path);
}

static void *read_member(zip_t *archive, const char *path, zip_int64_t index, size_t *bytes) {
    zip_stat_t status;
    if (zip_stat_index(archive, (zip_uint64_t)index, 0, &status) != 0 || !(status.valid & ZIP_STAT_SIZE))
        tool_die("%s: %s", path, zip_strerror(archive));
    if (status.size > INT64_MAX) tool_die("%s: its size overflows 64 bits", path);
    *bytes = (size_t)status.size;
    char *content = tool_allocate((int64_t)status.size, 1, path);
    zip_file_t *file = zip_fopen_index(archive, (zip_uint64_t)index, 0);
    if (!file) tool_die("%s: %s", path, zip_strerror(archive));
    for (size_t at = 0; at < *bytes;) {
        const zip_int64_t got = zip_fread(file, content + at, *bytes - at);
        if (got < 0) tool_die("%s: %s", path, zip_file_strerror(file));
        if (got == 0) tool_die("%s: the archive ends within it", path);
        at += (size_t)got;
    }
    check_end(file, path);
    zip_fclose(file);
    return content;
}

struct member {
    zip_t *archive;
    const char *archive_path, *name;
    zip_int64_t index; /* below 0: the archive has no such member */
};

/* split: where the name of the archive ends in path. */
static struct member find_member(const char *path, const char *split) {
    char *archive_path = copy(path, (size_t)(split - path) + 4), *name = copy(split + 5, strlen(split + 5));
    tool_name_file(archive_path, tool_option_of(path));
    struct member member = {open_archive(archive_path), archive_path, name, -1};
    strcat(name, ".npy");
    member.index = zip_name_locate(member.archive, name, 0);
    name[strlen(name) - 4] = '\0';
    if (member.index < 0) member.index = zip_name_locate(member.archive, name, 0);
    return member;
}

bool npz_has(const char *path) {
    const struct member member = find_member(path, strstr(path, ".npz:"));
    zip_discard(member.archive);
    return member.index >= 0;
}

FILE *npz_open(const char *path) {
    const char *split = strstr(path, ".npz:");
    if (!split || access(path, F_OK) == 0) return NULL;
    const struct member member = find_member(path, split);
    if (member.index < 0) no_member(member.archive, member.archive_path, member.name);
    size_t bytes;
    void *content = read_member(member.archive, path, member.index, &bytes);
    zip_discard(member.archive);
    if (bytes == 0) tool_die("%s: not a whole .npy file: it is empty", path);
    FILE *file = fmemopen(content, bytes, "rb");
    if (!file) tool_die("%s: it cannot be read", path);
    return file;
}
