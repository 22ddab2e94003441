/* SPDX-License-Identifier: MIT
 * The header's JSON is read by Jansson, which refuses malformed UTF-8, duplicate names, numbers beyond 64 bits and
 * nesting that would overflow the stack. */
#include "safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *name; int64_t bits; } dtypes[] = {
    {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},
    {"BF16", 16}, {"I32", 32}, {"U32", 32}, {"F32", 32},    {"F64", 64},    {"I64", 64}, {"U64", 64},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static bool complain(char wrong[256], const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool complain(char wrong[256], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(wrong, 256, format, arguments);
    va_end(arguments);
    return false;
}

static bool read_integer(const json_t *json, int64_t *value) {
    *value = json_integer_value(json);
    return json_is_integer(json) && *value >= 0;
}

static bool read_shape(const json_t *json, struct safetensor *tensor, char wrong[256]) {
    if (!json_is_array(json)) return complain(wrong, "tensor '%.80s' has no shape", tensor->name);
    if (json_array_size(json) > SAFETENSORS_MAX_DIMS)
        return complain(wrong, "tensor '%.80s' has more than %d dimensions", tensor->name, SAFETENSORS_MAX_DIMS);
    tensor->dims = (int)json_array_size(json);
    for (int i = 0; i < tensor->dims; i++) {
        if (!read_integer(json_array_get(json, (size_t)i), &tensor->shape[i]))
            return complain(wrong, "tensor '%.80s': its shape is not of sizes", tensor->name);
    }
    return true;
}

static bool read_dtype(const json_t *json, struct safetensor *tensor, int64_t *bits, char wrong[256]) {
    const char *name = json_string_value(json);
    if (!name) return complain(wrong, "tensor '%.80s' has no dtype", tensor->name);
    for (int i = 0; i < DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) != 0) continue;
        tensor->dtype = dtypes[i].name;
        *bits = dtypes[i].bits;
        return true;
    }
    return complain(wrong, "tensor '%.80s' has the unknown dtype '%.20s'", tensor->name, name);
}

/* ASSERT begin and end are inside the file and as far apart as dtype and shape say. */
static bool read_offsets(const json_t *json, struct safetensor *tensor, int64_t bits, int64_t data, int64_t file,
                         char wrong[256]) {
    int64_t bytes = bits / 8;
    for (int i = 0; i < tensor->dims; i++) {
        if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes))
            return complain(wrong, "tensor '%.80s': its size overflows 64 bits", tensor->name);
    }
    if (!json_is_array(json) || json_array_size(json) != 2 ||
        !read_integer(json_array_get(json, 0), &tensor->begin) || !read_integer(json_array_get(json, 1), &tensor->end))
        return complain(wrong, "tensor '%.80s': data_offsets are not two offsets", tensor->name);
    if (tensor->begin > tensor->end || tensor->end > file - data)
        return complain(wrong, "tensor '%.80s': bytes %" PRId64 " to %" PRId64 " of %" PRId64 " bytes of data",
                        tensor->name, tensor->begin, tensor->end, file - data);
    if (tensor->end - tensor->begin != bytes)
        return complain(wrong, "tensor '%.80s': its shape needs %" PRId64 " bytes, its offsets span %" PRId64,
                        tensor->name, bytes, tensor->end - tensor->begin);
    tensor->begin += data;
    tensor->end += data;
    return true;
}

static bool read_tensor(const char *name, const json_t *json, struct safetensor *tensor, int64_t data, int64_t file,
                        char wrong[256]) {
    int64_t bits = 0;
    tensor->name = strdup(name);
    if (!tensor->name) return complain(wrong, "out of memory");
    if (!json_is_object(json)) return complain(wrong, "tensor '%.80s' is not described by an object", name);
    if (json_object_size(json) != 3) return complain(wrong, "tensor '%.80s' has not three entries", name);
    return read_dtype(json_object_get(json, "dtype"), tensor, &bits, wrong) &&
           read_shape(json_object_get(json, "shape"), tensor, wrong) &&
           read_offsets(json_object_get(json, "data_offsets"), tensor, bits, data, file, wrong);
}

static bool check_metadata(json_t *json, char wrong[256]) {
    const char *key;
    json_t *value;
    if (!json_is_object(json)) return complain(wrong, "__metadata__ is not an object");
    json_object_foreach(json, key, value) {
        if (!json_is_string(value)) return complain(wrong, "__metadata__: '%.80s' is not a text", key);
    }
    return true;
}

static int by_place(const void *a, const void *b) {
    const struct safetensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The format wants the data used completely and once. */
static bool check_cover(const struct safetensors *parsed, int64_t data, int64_t file, char wrong[256]) {
    int64_t reached = data;
    for (size_t i = 0; i < parsed->count; i++) {
        const struct safetensor *tensor = &parsed->tensors[i];
        if (tensor->begin != reached)
            return complain(wrong, "tensor '%.80s' %s", tensor->name,
                            tensor->begin < reached ? "overlaps another" : "leaves a gap before it");
        reached = tensor->end;
    }
    return reached == file ||
           complain(wrong, "%" PRId64 " bytes stand behind the last tensor", file - reached);
}

static bool read_tensors(json_t *root, struct safetensors *parsed, int64_t data, int64_t file, char wrong[256]) {
    const char *name;
    json_t *json;
    if (!json_is_object(root)) return complain(wrong, "the header is not an object");
    parsed->tensors = calloc(json_object_size(root) + 1, sizeof *parsed->tensors);
    if (!parsed->tensors) return complain(wrong, "out of memory");
    json_object_foreach(root, name, json) {
        if (strcmp(name, "__metadata__") == 0) {
            if (!check_metadata(json, wrong)) return false;
        } else if (!read_tensor(name, json, &parsed->tensors[parsed->count++], data, file, wrong)) {
            return false;
        }
    }
    qsort(parsed->tensors, parsed->count, sizeof *parsed->tensors, by_place);
    return check_cover(parsed, data, file, wrong);
}

static json_t *read_header(const unsigned char *file, size_t bytes, uint64_t *header, char wrong[256]) {
    json_error_t error;
    if (bytes < 8) return complain(wrong, "not a safetensors file: it has %zu bytes", bytes), NULL;
    *header = 0;
    for (int i = 7; i >= 0; i--) *header = *header << 8 | file[i];
    if (*header > SAFETENSORS_MAX_HEADER)
        return complain(wrong, "not a safetensors file: a header of %" PRIu64 " bytes", *header), NULL;
    if (*header > bytes - 8)
        return complain(wrong, "a header of %" PRIu64 " bytes in a file of %zu", *header, bytes), NULL;
    if (*header == 0 || file[8] != '{') return complain(wrong, "the header does not begin with '{'"), NULL;
    json_t *root = json_loadb((const char *)file + 8, (size_t)*header, JSON_REJECT_DUPLICATES, &error);
    if (!root) complain(wrong, "the header is not JSON: %.180s (byte %d)", error.text, error.position);
    return root;
}

int safetensors_parse(const unsigned char *file, size_t bytes, struct safetensors *parsed, char wrong[256]) {
    uint64_t header;
    *parsed = (struct safetensors){0};
    json_t *root = read_header(file, bytes, &header, wrong);
    if (!root) return 0;
    const bool read = read_tensors(root, parsed, (int64_t)header + 8, (int64_t)bytes, wrong);
    json_decref(root);
    if (!read) safetensors_free(parsed);
    return read;
}

void safetensors_free(struct safetensors *parsed) {
    for (size_t i = 0; i < parsed->count; i++) free(parsed->tensors[i].name);
    free(parsed->tensors);
    *parsed = (struct safetensors){0};
}
