/* SPDX-License-Identifier: MIT
 * The reader of safetensors: refuses with a text, or gives tensors that cover the data once. */
#include "files/safetensors.h"

#include <string.h>

#include "fuzz.h"

/* Bits of a dtype, by its name: "BF16", "F8_E4M3", "BOOL". */
static int64_t bits_of_dtype(const char *name) {
    int64_t bits = 0;
    if (strcmp(name, "BOOL") == 0)
        return 8;
    name += strcspn(name, "0123456789");
    for (; *name >= '0' && *name <= '9'; name++)
        bits = bits * 10 + (*name - '0');
    return bits;
}

static void check_tensor(const struct safetensor *tensor, int64_t reached) {
    int64_t bytes = bits_of_dtype(tensor->dtype) / 8;
    if (tensor->dims < 0 || tensor->dims > SAFETENSORS_MAX_DIMS)
        fuzz_fail("%d dimensions", tensor->dims);
    for (int i = 0; i < tensor->dims; i++)
        if (tensor->shape[i] < 0 || __builtin_mul_overflow(bytes, tensor->shape[i], &bytes))
            fuzz_fail("dimension %d is %lld", i, (long long)tensor->shape[i]);
    if (tensor->begin != reached || tensor->end - tensor->begin != bytes || !tensor->name)
        fuzz_fail("bytes %lld to %lld, expected %lld from %lld on", (long long)tensor->begin,
                  (long long)tensor->end, (long long)bytes, (long long)reached);
}

static void parse(const uint8_t *file, size_t bytes) {
    struct safetensors parsed;
    char wrong[256];
    memset(wrong, 'x', sizeof wrong);
    if (!safetensors_parse(file, bytes, &parsed, wrong)) {
        if (!memchr(wrong, 0, sizeof wrong) || !wrong[0])
            fuzz_fail("a refusal without a text");
        fuzz_refused++;
        return;
    }
    int64_t reached = parsed.count > 0 ? parsed.tensors[0].begin : (int64_t)bytes;
    if (reached < 8)
        fuzz_fail("data from %lld on", (long long)reached);
    for (size_t i = 0; i < parsed.count; i++) {
        check_tensor(&parsed.tensors[i], reached);
        reached = parsed.tensors[i].end;
    }
    if (reached != (int64_t)bytes)
        fuzz_fail("tensors up to %lld of %zu bytes", (long long)reached, bytes);
    safetensors_free(&parsed);
    fuzz_taken++;
}

/* From a copy next to a guard page: sanitizers do not check Jansson. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct region copy = region_new(bytes);
    if (bytes > 0)
        memcpy(copy.data, data, bytes);
    parse((const uint8_t *)copy.data, bytes);
    region_free(&copy);
    return 0;
}
