/* SPDX-License-Identifier: MIT
 * The reader of safetensors: what it accepts, every refusal, flipped bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/safetensors.h"
#include "support/support.h"

/* A copy on the heap, so that a sanitizer sees reads past it. */
static unsigned char *file_of(const char *header, size_t length, size_t data_bytes, size_t *bytes) {
    *bytes = 8 + length + data_bytes;
    unsigned char *file = calloc(*bytes + !*bytes, 1);
    assert_non_null(file);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(file + 8, header, length);
    return file;
}

static void accepted(const char *header, size_t data_bytes, size_t tensors) {
    struct safetensors parsed;
    char wrong[256];
    size_t bytes;
    unsigned char *file = file_of(header, strlen(header), data_bytes, &bytes);
    if (!safetensors_parse(file, bytes, &parsed, wrong)) fail_msg("%s: %s", header, wrong);
    assert_int_equal(parsed.count, tensors);
    safetensors_free(&parsed);
    free(file);
}

static void refused_bytes(const char *header, size_t length, size_t data_bytes, const char *said) {
    struct safetensors parsed;
    char wrong[256];
    size_t bytes;
    unsigned char *file = file_of(header, length, data_bytes, &bytes);
    if (safetensors_parse(file, bytes, &parsed, wrong)) fail_msg("%s is accepted", header);
    if (!strstr(wrong, said)) fail_msg("%s\nsays '%s', not '%s'", header, wrong, said);
    free(file);
}

static void refused(const char *header, size_t data_bytes, const char *said) {
    refused_bytes(header, strlen(header), data_bytes, said);
}

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const char two[] = "{\"__metadata__\":{\"format\":\"pt\"}," TENSOR("b", "F32", "[2,3]", "[8,32]") ","
                          TENSOR("a", "I64", "[]", "[0,8]") "}   ";

static void good_files(void **state) {
    struct safetensors parsed;
    char wrong[256];
    size_t bytes;
    (void)state;
    accepted("{}", 0, 0);
    accepted("{" TENSOR("none", "F32", "[0,7]", "[0,0]") "}", 0, 1);
    accepted("{" TENSOR("\xc3\xa9", "BF16", "[2]", "[0,4]") "}", 4, 1);
    /* No weights, but they may be beside some. */
    accepted("{" TENSOR("a", "F4", "[3,2]", "[0,3]") "," TENSOR("b", "F6_E2M3", "[4]", "[3,6]") ","
             TENSOR("c", "F6_E3M2", "[4]", "[6,9]") "," TENSOR("d", "C64", "[1]", "[9,17]") ","
             TENSOR("e", "F8_E8M0", "[1]", "[17,18]") "," TENSOR("f", "F8_E5M2FNUZ", "[1]", "[18,19]") ","
             TENSOR("g", "F8_E4M3FNUZ", "[1]", "[19,20]") "}", 20, 7);
    unsigned char *file = file_of(two, strlen(two), 32, &bytes);
    assert_true(safetensors_parse(file, bytes, &parsed, wrong));
    assert_int_equal(parsed.count, 2);
    assert_string_equal(parsed.tensors[0].name, "a");
    assert_string_equal(parsed.tensors[1].name, "b");
    assert_string_equal(parsed.tensors[1].dtype, "F32");
    assert_int_equal(parsed.tensors[1].dims, 2);
    assert_int_equal(parsed.tensors[1].shape[1], 3);
    assert_int_equal(parsed.tensors[1].begin, 8 + strlen(two) + 8);
    assert_int_equal(parsed.tensors[1].end, bytes);
    safetensors_free(&parsed);
    free(file);
}

static void bad_lengths(void **state) {
    struct safetensors parsed;
    char wrong[256];
    const unsigned char huge[9] = {0x01, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, '{'}; /* 10^8 + 1 */
    const unsigned char most[9] = {255, 255, 255, 255, 255, 255, 255, 255, '{'};
    const unsigned char beyond[9] = {2, 0, 0, 0, 0, 0, 0, 0, '{'};
    (void)state;
    assert_false(safetensors_parse(huge, 0, &parsed, wrong));
    assert_false(safetensors_parse(huge, 7, &parsed, wrong));
    assert_non_null(strstr(wrong, "it has 7 bytes"));
    assert_false(safetensors_parse(huge, 9, &parsed, wrong));
    assert_non_null(strstr(wrong, "a header of 100000001 bytes"));
    assert_false(safetensors_parse(most, 9, &parsed, wrong));
    assert_non_null(strstr(wrong, "a header of 18446744073709551615 bytes"));
    assert_false(safetensors_parse(beyond, 9, &parsed, wrong));
    assert_non_null(strstr(wrong, "a header of 2 bytes in a file of 9"));
}

static void bad_headers(void **state) {
    (void)state;
    refused("", 0, "does not begin with '{'");
    refused(" {}", 0, "does not begin with '{'");
    refused("{", 0, "not JSON");
    refused("{} x", 0, "not JSON");
    refused("{\"__metadata__\":{},}", 0, "not JSON");
    refused("{\"a\xff\":1}", 0, "unable to decode byte");
    refused("{\"a\xc0\x80\":1}", 0, "unable to decode byte");
    refused_bytes("{\"a\":\0 1}", 9, 0, "not JSON");
    refused("{\"a\\u0000\":1}", 0, "not JSON");
    refused("{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("a", "U8", "[1]", "[1,2]") "}", 2, "duplicate");
    refused("{\"__metadata__\":{}," TENSOR("a", "U8", "[1]", "[0,1]") ",\"__metadata__\":{}}", 1,
            "duplicate __metadata__");
    refused("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "duplicate");
    refused("{\"a\":1}", 0, "tensor 'a' is not described by an object");
    refused("{\"__metadata__\":[]}", 0, "__metadata__ is not an object");
    refused("{\"__metadata__\":", 0, "__metadata__ is not an object");
    refused("{\"__metadata__\":{\"k\":1}}", 0, "__metadata__: 'k' is not a text");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "'a' has not three entries");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"offsets\":[0,1]}}", 1, "data_offsets are not two offsets");
    char deep[5000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    refused_bytes(deep, sizeof deep, 0, "nested deeper");
    refused("{\"a\":{\"b\":[{}]}}", 0, "nested deeper");
    refused("{\"[[[[\\\"[[\":1}", 0, "is not described by an object");
    refused("{\"a\"}", 0, "not JSON: ':' expected (byte 4)");
    refused("{\"a\":{}\"b\":{}}", 0, "not JSON");
    refused("{1:{}}", 0, "a name is not quoted");
    refused("{\"a\":}", 0, "not JSON");
    refused("{\"a\":{}}}", 0, "'a' has not three entries");
    refused("{\"__metadata__\":{\"k\":\"t\"", 0, "not JSON");
    char *wide = calloc(6000, 1);
    assert_non_null(wide);
    memset(wide, ' ', 5999);
    memcpy(wide, "{\"a\":{", 6);
    wide[5997] = wide[5998] = '}';
    refused(wide, 0, "'a' is described by 5993 bytes");
    free(wide);
}

static void bad_tensors(void **state) {
    (void)state;
    refused("{" TENSOR("a", "F33", "[1]", "[0,4]") "}", 4, "unknown dtype 'F33'");
    refused("{" TENSOR("a", "F4", "[3]", "[0,2]") "}", 2, "tensor 'a' ends within a byte");
    refused("{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "'a' has no dtype");
    refused("{" TENSOR("a", "F32", "1", "[0,4]") "}", 4, "'a' has no shape");
    refused("{" TENSOR("a", "F32", "[-1]", "[0,4]") "}", 4, "shape is not of sizes");
    refused("{" TENSOR("a", "F32", "[1.0]", "[0,4]") "}", 4, "shape is not of sizes");
    refused("{" TENSOR("a", "F32", "[99999999999999999999]", "[0,4]") "}", 4, "not JSON");
    refused("{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "more than 8 dimensions");
    refused("{" TENSOR("a", "F32", "[3037000500,3037000500]", "[0,4]") "}", 4, "its size overflows");
    refused("{" TENSOR("a", "F32", "[2]", "[0,4]") "}", 4, "its shape needs 8 bytes, its offsets span 4");
    refused("{" TENSOR("a", "F32", "[1]", "[0]") "}", 4, "data_offsets are not two offsets");
    refused("{" TENSOR("a", "F32", "[1]", "[0,4,8]") "}", 4, "data_offsets are not two offsets");
    refused("{" TENSOR("a", "F32", "[1]", "[-4,0]") "}", 4, "data_offsets are not two offsets");
    refused("{" TENSOR("a", "F32", "[1]", "[4,0]") "}", 4, "bytes 4 to 0 of 4 bytes");
    refused("{" TENSOR("a", "F32", "[2]", "[0,8]") "}", 4, "bytes 0 to 8 of 4 bytes");
    refused("{" TENSOR("a", "F32", "[1]", "[9223372036854775803,9223372036854775807]") "}", 4, "of 4 bytes of data");
    refused("{" TENSOR("a", "F32", "[2]", "[0,8]") "," TENSOR("b", "F32", "[2]", "[4,12]") "}", 12, "'b' overlaps");
    refused("{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[0,4]") "}", 4, "overlaps");
    refused("{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[8,12]") "}", 12,
            "'b' leaves a gap");
    refused("{" TENSOR("a", "F32", "[1]", "[4,8]") "}", 8, "'a' leaves a gap");
    refused("{" TENSOR("a", "F32", "[1]", "[0,4]") "}", 5, "1 bytes follow");
    refused("{}", 1, "1 bytes follow");
}

/* Whatever is accepted points into the file; sanitizers check the rest. */
static void flipped_bytes(void **state) {
    struct random random = {5};
    size_t bytes;
    unsigned char *file = file_of(two, strlen(two), 32, &bytes), *copy = malloc(bytes);
    int64_t taken = 0;
    (void)state;
    assert_non_null(copy);
    for (int64_t i = scaled_work(60000); i > 0; i--) {
        struct safetensors parsed;
        char wrong[256] = "";
        memcpy(copy, file, bytes);
        const size_t length = random_chance(&random, 10) ? (size_t)random_below(&random, (int64_t)bytes + 1) : bytes;
        for (int64_t flips = random_between(&random, 1, 3); flips > 0; flips--)
            copy[random_below(&random, (int64_t)bytes - 32)] ^= (unsigned char)(1 << random_below(&random, 8));
        if (!safetensors_parse(copy, length, &parsed, wrong)) {
            assert_true(wrong[0] && memchr(wrong, 0, sizeof wrong));
            continue;
        }
        for (size_t t = 0; t < parsed.count; t++) {
            assert_in_range(parsed.tensors[t].begin, 8, length);
            assert_in_range(parsed.tensors[t].end, parsed.tensors[t].begin, length);
        }
        taken++;
        safetensors_free(&parsed);
    }
    assert_true(taken > 0);
    free(copy);
    free(file);
}

/* Memory used per byte of the header, and whether reading succeeds: in a child process, to measure its peak. */
static double memory_per_byte(const unsigned char *file, size_t bytes, bool *read) {
    int status = 0;
    FILE *answer = tmpfile();
    assert_non_null(answer);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rusage before, after;
        struct safetensors parsed;
        char wrong[256];
        getrusage(RUSAGE_SELF, &before);
        const int success = safetensors_parse(file, bytes, &parsed, wrong);
        getrusage(RUSAGE_SELF, &after);
        fprintf(answer, "%d %ld", success, after.ru_maxrss - before.ru_maxrss);
        fflush(answer);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    int success;
    long kilobytes;
    rewind(answer);
    assert_int_equal(fscanf(answer, "%d %ld", &success, &kilobytes), 2);
    fclose(answer);
    *read = success;
    return (double)kilobytes * 1024 / (double)(bytes - 8);
}

/* A header of `entries` copies of this text, each after its own name if numbered. */
static unsigned char *many(const char *each, bool numbered, size_t entries, size_t *bytes) {
    char *header = malloc(entries * (strlen(each) + 32) + 2);
    size_t length = 1;
    assert_non_null(header);
    header[0] = '{';
    for (size_t i = 0; i < entries; i++) {
        if (numbered) length += (size_t)sprintf(header + length, "\"layer.%07zu", i);
        length += (size_t)sprintf(header + length, "%s", each);
    }
    header[length - 1] = '}';
    unsigned char *file = file_of(header, length, 0, bytes);
    free(header);
    return file;
}

/* Sanitizers delay reuse of freed memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
static const double most_allowed = 100;
#else
static const double most_allowed = 10;
#endif

/* Headers like those of models can be read, whatever their size, and no other takes more memory than allowed. */
static void bounded_memory(void **state) {
#ifdef __SANITIZE_ADDRESS__ /* its allocations take three times as long */
    enum { ENTRIES = 50000 };
#else
    enum { ENTRIES = 500000 };
#endif
    static const struct {
        const char *each;
        bool numbered, fine;
    } headers[] = {
        {".weight\":{\"dtype\":\"BF16\",\"shape\":[0,4096],\"data_offsets\":[0,0]},", true, true},
        {"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},", true, true},
        {"\"a\":{},", false, false},
        {"\"\":[[],[],[],[],[],[],[],[],[],[]],", false, false},
        {"\"a\":{\"b\":[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]},", false, false},
        {"0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,", false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        size_t bytes;
        bool read;
        unsigned char *file = many(headers[i].each, headers[i].numbered, ENTRIES, &bytes);
        const double most = memory_per_byte(file, bytes, &read);
        print_message("# %.1f bytes for each of the header's: %s\n", most, headers[i].each);
        assert_int_equal(read, headers[i].fine);
        assert_true(most < most_allowed);
        free(file);
    }
    /* One tensor with a huge description. */
    size_t bytes;
    bool read;
    unsigned char *file = many("[],", false, 20 * ENTRIES, &bytes);
    memcpy(file + 8, "{\"a\":[ ", 8);
    memcpy(file + bytes - 2, "]}", 2);
    assert_true(memory_per_byte(file, bytes, &read) < most_allowed);
    assert_false(read);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_files), cmocka_unit_test(bad_lengths),
                                       cmocka_unit_test(bad_headers), cmocka_unit_test(bad_tensors),
                                       cmocka_unit_test(flipped_bytes), cmocka_unit_test(bounded_memory)};
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
