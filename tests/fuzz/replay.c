/* SPDX-License-Identifier: MIT
 * A fuzz target without a fuzzer: every file of its corpus, every prefix of it, every byte changed in a few ways.
 * Argument: the corpus. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/cmocka_all.h"
#include "fuzz.h"
#include "support/support.h"

enum { MOST_BYTES = 1 << 16 };

static const char *corpus;
static uint8_t file[MOST_BYTES];
static size_t file_bytes;

/* A copy that ends at a guard page: the target may not read past its input. */
static void feed(size_t bytes) {
    struct region copy = region_new(bytes);
    memcpy(copy.data, file, bytes);
    LLVMFuzzerTestOneInput((const uint8_t *)copy.data, bytes);
    region_free(&copy);
}

static void load(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", corpus, name);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    file_bytes = fread(file, 1, MOST_BYTES, stream);
    fclose(stream);
}

/* Under emulation, only one variant in so many. */
static int64_t stride(void) {
    const int64_t percent = scaled_work(100);
    return percent < 100 ? 100 / percent : 1;
}

static void replay(const char *name) {
    static const uint8_t changes[] = {0x01, 0x80, 0xff, 0x10};
    const size_t step = (size_t)stride();
    load(name);
    feed(file_bytes);
    for (size_t bytes = 0; bytes < file_bytes; bytes += step)
        feed(bytes);
    for (size_t i = 0; i < file_bytes; i += step)
        for (size_t c = 0; c < sizeof changes; c++) {
            file[i] ^= changes[c];
            feed(file_bytes);
            file[i] ^= changes[c];
        }
}

static void test_corpus(void **state) {
    DIR *folder = opendir(corpus);
    int files = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') {
            replay(entry->d_name);
            files++;
        }
    closedir(folder);
    print_message("# %d files: %lld inputs taken, %lld refused\n", files, (long long)fuzz_taken,
                  (long long)fuzz_refused);
    assert_true(files > 0);
    assert_true(fuzz_taken > 0); /* a corpus of refusals reaches nothing */
    assert_true(fuzz_refused > 0);
    (void)state;
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};
    if (count != 2) {
        fputs("usage: replay CORPUS\n", stderr);
        return 2;
    }
    corpus = arguments[1];
    return cmocka_run_group_tests_name(corpus, tests, NULL, NULL);
}
