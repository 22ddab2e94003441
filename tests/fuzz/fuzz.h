/* SPDX-License-Identifier: MIT
 * Shared by the fuzz targets. A target is LLVMFuzzerTestOneInput: libFuzzer calls it (./dev fuzz), and replay.c does
 * with the files of corpus/ under any compiler. */
#ifndef RAPT_TESTS_FUZZ_H
#define RAPT_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Counts of inputs that the target refused, and accepted. */
extern int64_t fuzz_refused, fuzz_taken;

/* Prints the text and crashes, for libFuzzer to see. */
_Noreturn void fuzz_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- memory that ends at a guard page, which kernels hit, too; sanitizers do not check them */

struct region {
    char *data;
    size_t bytes;
    void *owner;
};

struct region region_new(size_t bytes);
void region_free(struct region *region);

/* ---- an input, piece by piece; zeros at its end */

struct input {
    const uint8_t *at, *end;
};

static inline uint8_t take_byte(struct input *input) { return input->at < input->end ? *input->at++ : 0; }

static inline uint64_t take_word(struct input *input) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)take_byte(input) << (8 * i);
    return word;
}

#endif
