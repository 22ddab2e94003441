/* SPDX-License-Identifier: MIT */
#include "files/npy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/tool.h"
#include "files/npy_parse.h"
#include "files/npz.h"

static const struct {
    enum npy_type type;
    const char *descr, *name;
    int64_t bytes;
} known_types[] = {
    {NPY_FLOAT32, "<f4", "float32", 4}, {NPY_FLOAT64, "<f8", "float64", 8}, {NPY_BOOL, "|b1", "bool", 1},
    {NPY_INT32, "<i4", "int32", 4},     {NPY_INT64, "<i8", "int64", 8},     {NPY_FLOAT16, "<f2", "float16", 2},
    {NPY_BFLOAT16, "<V2", "bfloat16", 2},
};
enum { KNOWN_TYPES = sizeof known_types / sizeof known_types[0] };

static int type_index(enum npy_type type) {
    int i = 0;
    while (known_types[i].type != type) i++;
    return i;
}

const char *npy_type_name(enum npy_type type) {
    return known_types[type_index(type)].name;
}

int64_t npy_item_bytes(enum npy_type type) {
    return known_types[type_index(type)].bytes;
}

char *npy_shape_text(int dims, const int64_t *shape, char text[NPY_SHAPE_TEXT]) {
    char *at = text;
    *at++ = '[';
    for (int i = 0; i < dims; i++) at += sprintf(at, i ? ", %lld" : "%lld", (long long)shape[i]);
    strcpy(at, "]");
    return text;
}

int npy_header(char header[256], enum npy_type type, int dims, const int64_t *shape) {
    char dict[192];
    int length = sprintf(dict, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                         known_types[type_index(type)].descr);
    for (int i = 0; i < dims; i++) length += sprintf(dict + length, "%lld, ", (long long)shape[i]);
    length += sprintf(dict + length, "), }");
    int total = (10 + length + 1 + 63) / 64 * 64;
    int padded = total - 10;
    memset(header, ' ', (size_t)total);
    memcpy(header, "\x93NUMPY\x01", 8);
    header[8] = (char)(padded & 255);
    header[9] = (char)(padded >> 8);
    memcpy(header + 10, dict, (size_t)length);
    header[total - 1] = '\n';
    return total;
}

static void read_exactly(FILE *file, void *into, size_t bytes, const char *path, const char *what) {
    if (fread(into, 1, bytes, file) == bytes) return;
    if (ferror(file)) tool_die_of_file(path, errno);
    tool_die("%s: not a whole .npy file: it ends within its %s", path, what);
}

/* Returns the dict's length; the file is at its first byte. */
static size_t read_preamble(FILE *file, const char *path) {
    enum { MAX_HEADER_BYTES = 65535 };
    unsigned char start[8], size[4] = {0};
    read_exactly(file, start, sizeof start, path, "magic string");
    if (memcmp(start, "PK", 2) == 0) npz_refuse_archive(path);
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        tool_die("%s: not a .npy file: the magic string is missing", path);
    if (start[6] < 1 || start[6] > 3) tool_die("%s: .npy version %d.%d is unknown", path, start[6], start[7]);
    read_exactly(file, size, start[6] == 1 ? 2 : 4, path, "header");
    uint32_t length = size[0] | (uint32_t)size[1] << 8 | (uint32_t)size[2] << 16 | (uint32_t)size[3] << 24;
    if (length > MAX_HEADER_BYTES)
        tool_die("%s: malformed .npy: a header of %u bytes", path, (unsigned)length);
    return length;
}

static enum npy_type accept_type(const char *path, const char *descr, unsigned accepted) {
    char names[128] = "";
    if (strcmp(descr, "|V2") == 0) descr = "<V2"; /* as NumPy rewrites it */
    for (int i = 0; i < KNOWN_TYPES; i++) {
        if (!(known_types[i].type & accepted)) continue;
        if (strcmp(known_types[i].descr, descr) == 0) return known_types[i].type;
        if (names[0]) strcat(names, " or ");
        strcat(names, known_types[i].name);
    }
    const char *name = descr;
    for (int i = 0; i < KNOWN_TYPES; i++) {
        if (strcmp(known_types[i].descr, descr) == 0) name = known_types[i].name;
    }
    tool_die("%s: holds %s, expected %s (NumPy converts with .astype)", path, name, names);
}

/* As in NumPy, a size of 0 counts as 1 for the limit: strides are products of the other sizes. */
static void count_items(struct npy_array *array, const char *what) {
    int64_t bytes = npy_item_bytes(array->type);
    array->count = 1;
    for (int i = 0; i < array->dims; i++) {
        bytes = tool_product(bytes, array->shape[i] ? array->shape[i] : 1, what);
        array->count *= array->shape[i];
    }
}

static struct npy_array read_header(FILE *file, const char *path, unsigned accepted) {
    size_t length = read_preamble(file, path);
    char *text = tool_allocate((int64_t)length, 1, path);
    read_exactly(file, text, length, path, "header");
    struct npy_parsed parsed = {0};
    const char *wrong = npy_parse(text, length, &parsed);
    if (wrong) tool_die("%s: malformed .npy: %s", path, wrong);
    if (parsed.fortran_order && parsed.dims > 1) {
        tool_die("%s: is in Fortran order, expected C order (NumPy converts with ascontiguousarray)", path);
    }
    struct npy_array array = {
        .path = path, .type = accept_type(path, parsed.descr, accepted), .dims = parsed.dims};
    memcpy(array.shape, parsed.shape, sizeof array.shape);
    count_items(&array, path);
    return array;
}

/* A header may promise any number of bytes: the file must have them. */
static void check_file_size(FILE *file, const char *path, int64_t data_bytes) {
    struct stat status;
    const int descriptor = fileno(file);
    if (descriptor >= 0 && (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))) return;
    const int64_t at = ftello(file);
    if (fseeko(file, 0, SEEK_END) != 0) return;
    int64_t left = (int64_t)ftello(file) - at;
    fseeko(file, at, SEEK_SET);
    if (left == data_bytes) return;
    tool_die("%s: not a whole .npy file: its shape needs %lld bytes of data, it has %lld", path,
             (long long)data_bytes, (long long)left);
}

struct npy_array npy_read(const char *path, unsigned accepted) {
    FILE *file = npz_open(path);
    if (file == NULL) file = tool_open(path);
    struct npy_array array = read_header(file, path, accepted);
    const int64_t bytes = array.count * npy_item_bytes(array.type);
    check_file_size(file, path, bytes);
    array.data = tool_allocate(bytes, 1, path);
    read_exactly(file, array.data, (size_t)bytes, path, "data");
    fclose(file);
    return array;
}

struct npy_array npy_new(const char *path, enum npy_type type, int dims, const int64_t *shape) {
    struct npy_array array = {.path = path, .type = type, .dims = dims};
    const char *name = path ? path : "a result";
    memcpy(array.shape, shape, (size_t)dims * sizeof *shape);
    count_items(&array, name);
    array.data = tool_allocate(array.count, (size_t)npy_item_bytes(type), name);
    return array;
}

static float widen_bfloat(uint16_t upper) {
    const uint32_t bits = (uint32_t)upper << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static float widen(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const float sign = half & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24));
}

struct npy_array npy_floats(struct npy_array array) {
    if (array.type == NPY_FLOAT32) return array;
    const uint16_t *halves = array.data;
    float *floats = tool_allocate(array.count, sizeof *floats, array.path);
    for (int64_t i = 0; i < array.count; i++)
        floats[i] = array.type == NPY_FLOAT16 ? widen(halves[i]) : widen_bfloat(halves[i]);
    array.type = NPY_FLOAT32;
    array.data = floats;
    return array;
}

struct npy_array npy_read_floats(const char *path) { return npy_floats(npy_read(path, NPY_FLOATS)); }

static double number_at(const struct npy_array *array, int64_t i) {
    switch (array->type) {
    case NPY_FLOAT32: return (double)((const float *)array->data)[i];
    case NPY_FLOAT16: return (double)widen(((const uint16_t *)array->data)[i]);
    case NPY_BFLOAT16: return (double)widen_bfloat(((const uint16_t *)array->data)[i]);
    case NPY_BOOL: return ((const unsigned char *)array->data)[i];
    case NPY_INT32: return ((const int32_t *)array->data)[i];
    case NPY_INT64: return (double)((const int64_t *)array->data)[i];
    case NPY_FLOAT64: break;
    }
    return ((const double *)array->data)[i];
}

const double *npy_doubles(const struct npy_array *array) {
    if (array->type == NPY_FLOAT64) return array->data;
    double *numbers = tool_allocate(array->count, sizeof *numbers, array->path);
    for (int64_t i = 0; i < array->count; i++) numbers[i] = number_at(array, i);
    return numbers;
}
