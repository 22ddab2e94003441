/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "calls/far_parts.h"

#include "support/cmocka_all.h"

#include <stdio.h>
#include <sys/mman.h>

enum { MOST_PARTS = 12, STEPS = 8 };
#define MAP_BYTES (STEPS * FAR)

char *far_map(void) {
    static char *map;
    if (!map)
        map = mmap(NULL, (size_t)MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        print_message("# no addresses for %d strides of %lld bytes\n", STEPS, (long long)FAR);
        skip();
    }
    return map;
}

static int64_t *stride_of(const struct part *part, int axis) {
    rapt_tensor *tensor = part->tensor;
    return axis == 1   ? &tensor->head_stride_bytes
           : axis == 2 ? &tensor->token_stride_bytes
           : part->is_paged ? &tensor->page_stride_bytes
                            : &tensor->batch_stride_bytes;
}

static char *row_at(const struct part *part, int64_t row) {
    const int64_t *n = part->count;
    return (char *)part->tensor->data + row / (n[1] * n[2]) * *stride_of(part, 0) +
           row / n[2] % n[1] * *stride_of(part, 1) + row % n[2] * *stride_of(part, 2);
}

static int64_t rows_of(const struct part *part) { return part->count[0] * part->count[1] * part->count[2]; }

/* Copies its rows, packed. */
static char *packed(const struct part *part) {
    char *rows = test_alloc((size_t)(rows_of(part) * part->row_bytes));
    for (int64_t row = 0; row < rows_of(part); row++)
        memcpy(rows + row * part->row_bytes, row_at(part, row), (size_t)part->row_bytes);
    return rows;
}

static void unpack(const struct part *part, const char *rows) {
    for (int64_t row = 0; row < rows_of(part); row++)
        memcpy(row_at(part, row), rows + row * part->row_bytes, (size_t)part->row_bytes);
}

static void scribble(const struct part *part) {
    for (int64_t row = 0; row < rows_of(part); row++)
        memset(row_at(part, row), 0xff, (size_t)part->row_bytes);
}

/* Packs rows except along one axis. */
static void move_far(const struct part *part, int axis) {
    int64_t next = (part->row_bytes + 3) / 4 * 4;
    part->tensor->data = far_map();
    part->tensor->extent_bytes = MAP_BYTES;
    for (int k = 2; k >= 0; k--) {
        *stride_of(part, k) = k == axis ? FAR : next;
        next *= k == axis ? 1 : part->count[k];
    }
}

static void check_outputs(const struct part *parts, int count, char *const *expected, const char *what) {
    for (int p = 0; p < count; p++) {
        const size_t bytes = (size_t)(rows_of(&parts[p]) * parts[p].row_bytes);
        if (parts[p].is_output && memcmp(packed(&parts[p]), expected[p], bytes) != 0)
            fail_msg("%s: part %d differs", what, p);
    }
}

void check_parts(const struct part *parts, int count, void (*run)(void *call), void *call) {
    char *near[MOST_PARTS], what[64];
    run(call);
    for (int p = 0; p < count; p++)
        near[p] = packed(&parts[p]);
    for (int p = 0; p < count; p++)
        for (int axis = 0; axis < 3; axis++) {
            const rapt_tensor tensor = *parts[p].tensor;
            if (parts[p].count[axis] == 1 || parts[p].count[axis] > STEPS)
                continue;
            move_far(&parts[p], axis);
            unpack(&parts[p], near[p]);
            for (int output = 0; output < count; output++)
                if (parts[output].is_output)
                    scribble(&parts[output]);
            run(call);
            snprintf(what, sizeof what, "part %d far along axis %d", p, axis);
            check_outputs(parts, count, near, what);
            *parts[p].tensor = tensor;
        }
}

rapt_tensor drawn(int64_t batch, int64_t heads, int64_t tokens, int64_t dim) {
    struct random random = {(uint64_t)(batch * 100 + heads * 10 + tokens)};
    const float *numbers = test_drawn(&random, batch * heads * tokens * dim, random_uniform);
    return rapt_input_bhsd(numbers, batch, heads, tokens, dim);
}

rapt_tensor drawn_bytes(int64_t batch, int64_t heads, int64_t tokens, int64_t dim) {
    signed char *bytes = test_alloc((size_t)(batch * heads * tokens * dim));
    for (int64_t i = 0; i < batch * heads * tokens * dim; i++)
        bytes[i] = (signed char)(i * 37 % 251 - 125);
    return rapt_tensor_bhsd(bytes, RAPT_I8, batch, heads, tokens, dim);
}

rapt_tensor in_pages(rapt_tensor tensor) {
    tensor.page_stride_bytes = tensor.batch_stride_bytes;
    tensor.batch_stride_bytes = 0;
    return tensor;
}

void set_scales(rapt_tensor *tensor, const rapt_tensor *scales) {
    tensor->scale_dtype = RAPT_F32;
    tensor->scales = scales->data;
    tensor->scale_batch_stride_bytes = scales->batch_stride_bytes;
    tensor->scale_head_stride_bytes = scales->head_stride_bytes;
    tensor->scale_token_stride_bytes = scales->token_stride_bytes;
}
