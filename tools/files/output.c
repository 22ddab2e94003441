/* SPDX-License-Identifier: MIT */
#include "files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool.h"

enum { MAX_CLAIMS = 40 };

/* Two consecutive parts, like a header and its data. */
struct part {
    const void *bytes;
    size_t count;
};

static struct claim {
    const char *path;                 /* as given */
    char *target, *temporary, *saved; /* saved: another name of the target's file before output_commit */
    FILE *file;
    bool special, existed;            /* special: a device, pipe or descriptor, which is written in place */
    int descriptor;                   /* that path leads to, or -1 */
    dev_t device;                     /* of a target that existed */
    ino_t inode;
    volatile sig_atomic_t has_temporary;
    struct part parts[2];
    char header[256];
} claims[MAX_CLAIMS];
static volatile sig_atomic_t claim_count;

/* While this is set, signals wait: names are given to all results or none. */
static volatile sig_atomic_t busy, pending;

static char *made_folder; /* for results without names so far */

static void remove_temporaries(void) {
    for (int i = 0; i < claim_count; i++) {
        if (claims[i].has_temporary) unlink(claims[i].temporary);
    }
    if (made_folder) rmdir(made_folder);
}

static void on_signal(int number) {
    if (busy) {
        pending = number;
        return;
    }
    remove_temporaries();
    signal(number, SIG_DFL);
    raise(number);
}

static void hold_signals(void) {
    busy = 1;
}

static void release_signals(void) {
    busy = 0;
    if (pending) on_signal(pending);
}

/* Ignored signals, as under nohup, stay ignored. */
static void catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

/* Whatever ends the program, nothing incomplete remains. path: of what is made first. */
static void watch_end(const char *path) {
    static bool watches;
    if (watches) return;
    watches = true;
    if (atexit(remove_temporaries) != 0) tool_die("%s: no exit handler is available", path);
    catch_signals();
}

static _Noreturn void cannot_write(const char *path, int reason) {
    tool_die("%s: cannot be written: %s", tool_file(path), strerror(reason));
}

static char *joined(const char *a, const char *b, const char *c) {
    const size_t bytes = strlen(a) + strlen(b) + strlen(c) + 1;
    char *text = tool_allocate((int64_t)bytes, 1, "a name");
    snprintf(text, bytes, "%s%s%s", a, b, c);
    return text;
}

/* Where links lead to, or NULL. */
static char *resolved(const char *path) {
    char *text = realpath(path, NULL);
    char *kept = text ? joined(text, "", "") : NULL;
    free(text);
    return kept;
}

static char *resolved_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = joined(slash ? path : ".", "", "");
    if (slash) folder[slash == path ? 1 : slash - path] = '\0';
    return resolved(folder);
}

/* N if path leads to /proc/self/fd/N, as /dev/stdout does, else -1. To replace the file there would lose what others
 * wrote into it, or, if it was deleted, replace the link. */
static int descriptor_of(const char *path) {
    enum { MOST_LINKS = 8 };
    char own[64], target[4096];
    snprintf(own, sizeof own, "/proc/%lld/fd", (long long)getpid());
    for (int links = 0; links < MOST_LINKS; links++) {
        const char *folder = resolved_folder(path), *slash = strrchr(path, '/');
        if (folder && strcmp(folder, own) == 0) return atoi(slash ? slash + 1 : path);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        if (!folder || length < 0) return -1;
        target[length] = '\0';
        path = target[0] == '/' ? joined(target, "", "") : joined(folder, "/", target);
    }
    return -1;
}

/* The same text for all names of a file, existing or not. */
static char *resolve(const char *path) {
    char *whole = resolved(path);
    struct stat status;
    if (whole) return whole;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && stat(path, &status) != 0)
        tool_die("%s: cannot be written: it is a link to a file that does not exist", tool_file(path));
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *place = resolved_folder(path);
    if (!place || !name[0]) cannot_write(path, place ? EISDIR : errno);
    return joined(place, strcmp(place, "/") == 0 ? "" : "/", name);
}

/* mkstemp's files are private: a result gets the mode of the file it replaces, or of any new file of the user. */
static void set_mode(int descriptor, const struct stat *status) {
    mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(descriptor, status ? status->st_mode & 07777 : 0666 & ~mask);
}

/* Next to the target, and within the limit on names, which the target's name may already reach. */
static char *temporary_of(const char *target) {
    enum { MOST = 200 };
    const char *name = strrchr(target, '/') + 1;
    const size_t kept = strlen(name) < MOST ? strlen(name) : MOST;
    char *text = joined(target, ".XXXXXX", "");
    strcpy(text + (name - target) + kept, ".XXXXXX");
    return text;
}

static void open_temporary(struct claim *claim, const struct stat *status) {
    claim->temporary = temporary_of(claim->target);
    hold_signals();
    int descriptor = mkstemp(claim->temporary);
    const int reason = errno;
    claim->has_temporary = descriptor >= 0;
    claim_count++;
    release_signals();
    if (descriptor < 0) cannot_write(claim->path, reason);
    set_mode(descriptor, status);
    claim->file = fdopen(descriptor, "wb");
    if (!claim->file) cannot_write(claim->path, errno);
}

/* Also if they are two hard links. */
static bool same_file(const struct claim *a, const struct claim *b) {
    if (a->existed && b->existed && a->device == b->device && a->inode == b->inode) return true;
    return strcmp(a->target, b->target) == 0;
}

static void check_other_claims(const struct claim *claim) {
    for (int i = 0; i < claim_count; i++) {
        if (!same_file(&claims[i], claim)) continue;
        if (strcmp(claims[i].path, claim->path) == 0)
            tool_die("%s: two results cannot have the same name", tool_file(claim->path));
        tool_die("%s and %s: two results cannot be the same file", tool_file(claims[i].path), tool_file(claim->path));
    }
}

/* In a sticky folder only the owners of file or folder may replace a file. */
static bool may_replace(const char *target, const struct stat *status) {
    struct stat folder;
    char *name = joined(target, "", "");
    char *slash = strrchr(name, '/');
    if (slash) slash[slash == name] = 0;
    const bool is_sticky = stat(slash ? name : ".", &folder) == 0 && (folder.st_mode & S_ISVTX);
    return !is_sticky || geteuid() == 0 || geteuid() == status->st_uid || geteuid() == folder.st_uid;
}

void output_claim(const char *path) {
    struct stat status;
    tool_check_name(path);
    if (claim_count == MAX_CLAIMS) tool_die("%s: more than %d results", path, MAX_CLAIMS);
    watch_end(path);
    struct claim *claim = &claims[claim_count];
    *claim = (struct claim){.path = path, .target = resolve(path)};
    claim->existed = stat(claim->target, &status) == 0;
    if (claim->existed) {
        claim->device = status.st_dev;
        claim->inode = status.st_ino;
        tool_note_file(path, &status, true);
    }
    claim->descriptor = descriptor_of(path);
    claim->special = claim->existed && (claim->descriptor >= 0 || !S_ISREG(status.st_mode));
    if (claim->existed && S_ISDIR(status.st_mode)) cannot_write(path, EISDIR);
    check_other_claims(claim);
    const bool has_descriptor = claim->descriptor >= 0;
    if (has_descriptor && (fcntl(claim->descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY) cannot_write(path, EBADF);
    if (claim->existed && !has_descriptor && access(claim->target, W_OK) != 0) cannot_write(path, errno);
    if (claim->existed && !claim->special && !(status.st_mode & 0222))
        tool_die("%s: cannot be written: it is read-only", tool_file(path));
    if (claim->existed && !claim->special && !may_replace(claim->target, &status)) cannot_write(path, EPERM);
    if (claim->special)
        claim_count++;
    else
        open_temporary(claim, claim->existed ? &status : NULL);
}

void output_make_folder(const char *path) {
    tool_check_name(path);
    watch_end(path);
    const int reason = mkdir(path, 0777) == 0 ? 0 : errno;
    if (reason == 0)
        made_folder = joined(path, "", "");
    else if (reason != EEXIST)
        tool_die("%s: cannot be made: %s", tool_file(path), strerror(reason));
}

void output_claim_array(const char *path) {
    const size_t length = strlen(path);
    if (strstr(path, ".npz:") || (length >= 4 && strcmp(path + length - 4, ".npz") == 0))
        tool_die("%s: results are .npy files, not archives or members of one", tool_file(path));
    output_claim(path);
}

void output_check_report(bool is_printed) {
    struct stat status;
    if (!is_printed || fstat(STDOUT_FILENO, &status) != 0 || S_ISCHR(status.st_mode)) return;
    for (int i = 0; i < claim_count; i++) {
        const struct claim *claim = &claims[i];
        if (claim->existed && claim->device == status.st_dev && claim->inode == status.st_ino)
            tool_die("%s: the report goes there as well: --quiet leaves it out", tool_file(claim->path));
    }
}

static struct claim *claim_of(const char *path) {
    for (int i = 0; i < claim_count; i++) {
        if (claims[i].path == path || strcmp(claims[i].path, path) == 0) return &claims[i];
    }
    output_claim(path);
    return &claims[claim_count - 1];
}

static bool write_parts(const struct claim *claim) {
    for (int i = 0; i < 2; i++) {
        const struct part part = claim->parts[i];
        if (fwrite(part.bytes, 1, part.count, claim->file) != part.count) return false;
    }
    return fflush(claim->file) == 0 && (claim->special || fsync(fileno(claim->file)) == 0);
}

static void write_file(struct claim *claim) {
    if (claim->descriptor >= 0)
        claim->file = fdopen(dup(claim->descriptor), "wb");
    else if (claim->special)
        claim->file = fopen(claim->target, "wb");
    if (!claim->file) cannot_write(claim->path, errno);
    bool written = write_parts(claim);
    int reason = errno;
    if (fclose(claim->file) != 0 && written) {
        written = false;
        reason = errno;
    }
    claim->file = NULL;
    if (!written) cannot_write(claim->path, reason);
}

static void stage(struct claim *claim, struct part first, struct part second) {
    claim->parts[0] = first;
    claim->parts[1] = second;
    if (!claim->special) write_file(claim);
}

void output_stage(const struct npy_array *array) {
    struct claim *claim = claim_of(array->path);
    const size_t bytes = (size_t)npy_header(claim->header, array->type, array->dims, array->shape);
    const size_t data_bytes = (size_t)(array->count * npy_item_bytes(array->type));
    stage(claim, (struct part){claim->header, bytes}, (struct part){array->data, data_bytes});
}

void output_stage_bytes(const char *path, const void *bytes, size_t count) {
    stage(claim_of(path), (struct part){bytes, count}, (struct part){"", 0});
}

/* Keeps the target's file under a second name; without hard links, under that alone. */
static bool save(struct claim *claim) {
    claim->saved = joined(claim->temporary, ".before", "");
    return link(claim->target, claim->saved) == 0 || rename(claim->target, claim->saved) == 0;
}

/* Restores the first count targets. */
static void restore(int count) {
    for (int i = 0; i < claim_count; i++) {
        struct claim *claim = &claims[i];
        if (claim->saved)
            rename(claim->saved, claim->target);
        else if (i < count && !claim->special)
            unlink(claim->target);
        /* If both were names of one file, rename does nothing. */
        if (claim->saved) unlink(claim->saved);
    }
}

static void give_names(void) {
    for (int i = 0; i < claim_count; i++) {
        struct claim *claim = &claims[i];
        if (claim->special) continue;
        if ((claim_count > 1 && claim->existed && !save(claim)) || rename(claim->temporary, claim->target) != 0) {
            const int reason = errno;
            restore(i);
            cannot_write(claim->path, reason);
        }
        claim->has_temporary = false;
    }
}

void output_commit(void) {
    for (int i = 0; i < claim_count; i++) {
        if (claims[i].special) write_file(&claims[i]);
    }
    hold_signals();
    give_names();
    for (int i = 0; i < claim_count; i++) {
        if (claims[i].saved) unlink(claims[i].saved);
    }
    claim_count = 0;
    made_folder = NULL;
    release_signals();
}
