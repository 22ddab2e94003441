/* SPDX-License-Identifier: MIT */
#include "layer/weights.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tool.h"
#include "files/npz.h"

/* Reachable for leak checkers: a command has one such file. */
static struct safetensors tensors_of_file;

static char *joined(const char *a, const char *b, const char *c, const char *d) {
    const size_t bytes = strlen(a) + strlen(b) + strlen(c) + strlen(d) + 1;
    char *text = tool_allocate((int64_t)bytes, 1, "a name");
    snprintf(text, bytes, "%s%s%s%s", a, b, c, d);
    return text;
}

static unsigned char *read_file(const char *path, size_t *bytes) {
    struct stat status;
    FILE *file = tool_open(path);
    if (fstat(fileno(file), &status) != 0) tool_die_of_file(path, errno);
    *bytes = (size_t)status.st_size;
    unsigned char *content = tool_allocate((int64_t)status.st_size, 1, path);
    const bool whole = fread(content, 1, *bytes, file) == *bytes;
    if (ferror(file)) tool_die_of_file(path, errno);
    if (!whole) tool_die("%s: it got shorter while it was read", tool_file(path));
    fclose(file);
    return content;
}

struct weights weights_open(const char *path, const char *prefix) {
    struct weights weights = {.path = path, .prefix = prefix ? prefix : ""};
    struct stat status;
    char wrong[256];
    size_t bytes;
    tool_check_name(path);
    if (stat(path, &status) != 0) tool_die_of_file(path, errno);
    if (S_ISDIR(status.st_mode)) return weights;
    if (!S_ISREG(status.st_mode)) tool_die("%s: is neither a folder nor a file", path);
    weights.is_archive = strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".npz") == 0;
    if (weights.is_archive) return weights;
    weights.file = read_file(path, &bytes);
    if (bytes >= 6 && memcmp(weights.file, "\x93NUMPY", 6) == 0)
        tool_die("%s: is a .npy file: expected the folder that holds it, or a safetensors file", tool_file(path));
    if (bytes >= 4 && memcmp(weights.file, "PK\3\4", 4) == 0)
        tool_die("%s: is an archive, but its name does not end with .npz", tool_file(path));
    if (!safetensors_parse(weights.file, bytes, &tensors_of_file, wrong)) tool_die("%s: %s", path, wrong);
    weights.tensors = &tensors_of_file;
    return weights;
}

static const struct safetensor *find(const struct weights *weights, const char *name) {
    const size_t prefix = strlen(weights->prefix);
    for (size_t i = 0; i < weights->tensors->count; i++) {
        const char *has = weights->tensors->tensors[i].name;
        if (strncmp(has, weights->prefix, prefix) == 0 && strcmp(has + prefix, name) == 0)
            return &weights->tensors->tensors[i];
    }
    return NULL;
}

static const char *path_of(const struct weights *weights, const char *name) {
    const char *path = joined(weights->path, weights->is_archive ? ":" : "/", weights->prefix, name);
    if (!weights->is_archive) path = joined(path, ".npy", "", "");
    tool_name_file(path, tool_option_of(weights->path));
    return path;
}

bool weights_has(const struct weights *weights, const char *name) {
    struct stat status; /* a file that exists but cannot be read fails when it is read */
    if (weights->file) return find(weights, name) != NULL;
    if (weights->is_archive) return npz_has(path_of(weights, name));
    return lstat(path_of(weights, name), &status) == 0 || errno != ENOENT;
}

static enum npy_type type_of(const struct weights *weights, const struct safetensor *tensor) {
    static const struct { const char *dtype; enum npy_type type; } types[] = {
        {"F32", NPY_FLOAT32}, {"F16", NPY_FLOAT16}, {"BF16", NPY_BFLOAT16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(tensor->dtype, types[i].dtype) == 0) return types[i].type;
    tool_die("%s: '%s' holds %s, expected F32, F16 or BF16", weights->path, tensor->name, tensor->dtype);
}

struct npy_array weights_read(const struct weights *weights, const char *name) {
    if (!weights->file) {
        if (!weights_has(weights, name))
            tool_die("%s: the weights lack %s%s.npy", weights->path, weights->prefix, name);
        return npy_read_floats(path_of(weights, name));
    }
    const struct safetensor *tensor = find(weights, name);
    if (!tensor) tool_die("%s: the weights lack the tensor '%s%s'", weights->path, weights->prefix, name);
    if (tensor->dims > NPY_MAX_DIMS)
        tool_die("%s: '%s' has more than %d dimensions", weights->path, tensor->name, NPY_MAX_DIMS);
    const int64_t bytes = tensor->end - tensor->begin;
    struct npy_array array = {.path = joined(weights->path, ":", tensor->name, ""),
                              .type = type_of(weights, tensor), .dims = tensor->dims};
    array.count = bytes / npy_item_bytes(array.type);
    memcpy(array.shape, tensor->shape, (size_t)tensor->dims * sizeof array.shape[0]);
    array.data = tool_allocate(bytes, 1, array.path); /* the file's may be misaligned */
    memcpy(array.data, weights->file + tensor->begin, (size_t)bytes);
    return npy_floats(array);
}
