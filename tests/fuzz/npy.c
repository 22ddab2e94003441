/* SPDX-License-Identifier: MIT
 * The reader of .npy files, starting from the file: dies with one line, or gives the file's contents, and never
 * requests more memory than the file can fill. The code here replaces tool.c: the command exits when it dies. */
#include "files/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/tool.h"
#include "fuzz.h"

enum { MOST_ALLOCATIONS = 4, MOST_HEADER = 65536 };

static jmp_buf death;
static size_t input_bytes;
static void *allocations[MOST_ALLOCATIONS];
static int allocation_count;
static FILE *opened;

void tool_die(const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!text[0])
        fuzz_fail("it dies without a word");
    longjmp(death, 1);
}

void tool_die_of_file(const char *path, int reason) {
    tool_die("%s: %s", path, strerror(reason));
}

FILE *tool_open(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fuzz_fail("%s cannot be opened", path);
    return file;
}

void *tool_allocate(int64_t count, size_t size, const char *what) {
    if (count < 0 || (uint64_t)count > (input_bytes + MOST_HEADER) / size)
        fuzz_fail("a file of %zu bytes asks for %lld of %zu (%s)", input_bytes, (long long)count, size, what);
    if (allocation_count == MOST_ALLOCATIONS)
        fuzz_fail("more than %d allocations", allocation_count);
    void *memory = calloc(1, (size_t)count * size);
    return allocations[allocation_count++] = memory;
}

int64_t tool_product(int64_t a, int64_t b, const char *what) {
    int64_t product;
    if (a < 0 || b < 0)
        fuzz_fail("%s: a product of negative numbers", what);
    if (__builtin_mul_overflow(a, b, &product))
        tool_die("overflow");
    return product;
}

/* The reader leaves the file open when it dies. With large offsets, which Meson enables, fopen is fopen64. */
FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode) { return opened = __real_fopen64(path, mode); }

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) { return opened = __real_fopen(path, mode); }

int __real_fclose(FILE *file);
int __wrap_fclose(FILE *file);
int __wrap_fclose(FILE *file) {
    opened = NULL;
    return __real_fclose(file);
}

/* A file in memory with these bytes; every call gives the same path. */
static const char *file_of(const uint8_t *data, size_t bytes) {
    static int descriptor = -1;
    static char path[64];
    if (descriptor < 0) {
        descriptor = memfd_create("npy", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    }
    if (descriptor < 0 || ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, bytes, 0) != (ssize_t)bytes)
        fuzz_fail("no file in memory");
    return path;
}

static bool read_file(const uint8_t *data, size_t bytes, struct npy_array *array) {
    input_bytes = bytes;
    if (setjmp(death))
        return false;
    *array = npy_read(file_of(data, bytes), ~0u);
    return true;
}

/* By its name: "float16", "int64", "bool". */
static size_t element_bytes(enum npy_type type) {
    const char *name = npy_type_name(type), *digits = name + strcspn(name, "0123456789");
    return *digits ? (size_t)strtol(digits, NULL, 10) / 8 : 1;
}

/* Arrays that the command writes are read back the same. */
static void check_round_trip(const struct npy_array *array, const uint8_t *data, size_t data_bytes) {
    char header[256];
    const size_t length = (size_t)npy_header(header, array->type, array->dims, array->shape);
    uint8_t *written = malloc(length + data_bytes);
    struct npy_array again;
    if (!written)
        fuzz_fail("out of memory");
    memcpy(written, header, length);
    memcpy(written + length, data, data_bytes);
    if (!read_file(written, length + data_bytes, &again))
        fuzz_fail("its own header is refused: %.*s", (int)length - 10, header + 10);
    if (again.dims != array->dims || again.type != array->type ||
        memcmp(again.shape, array->shape, (size_t)array->dims * sizeof *array->shape) != 0 ||
        memcmp(again.data, data, data_bytes) != 0)
        fuzz_fail("another array after it was written");
    free(written);
}

static void check_array(const struct npy_array *array, const uint8_t *data, size_t bytes) {
    int64_t count = 1;
    if (array->dims < 0 || array->dims > NPY_MAX_DIMS)
        fuzz_fail("%d dimensions", array->dims);
    for (int i = 0; i < array->dims; i++)
        if (array->shape[i] < 0 || __builtin_mul_overflow(count, array->shape[i], &count))
            fuzz_fail("dimension %d is %lld", i, (long long)array->shape[i]);
    const size_t data_bytes = (size_t)count * element_bytes(array->type);
    if (count != array->count || data_bytes > bytes)
        fuzz_fail("%lld elements of %lld in %zu bytes", (long long)array->count, (long long)count, bytes);
    if (memcmp(data + bytes - data_bytes, array->data, data_bytes) != 0)
        fuzz_fail("its data are not those at the end of the file");
    check_round_trip(array, data + bytes - data_bytes, data_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct npy_array array;
    if (read_file(data, bytes, &array)) {
        check_array(&array, data, bytes);
        fuzz_taken++;
    } else {
        fuzz_refused++;
    }
    while (allocation_count > 0)
        free(allocations[--allocation_count]);
    if (opened)
        fclose(opened);
    return 0;
}
