/* SPDX-License-Identifier: MIT
 * Calls with tensors near, then far, one by one along each axis, by strides beyond 32 bits, in memory that is reserved
 * but hardly used. */
#ifndef RAPT_TESTS_FAR_PARTS_H
#define RAPT_TESTS_FAR_PARTS_H

#include "rapt/rapt.h"
#include "support/support.h"

#define FAR ((4ll << 30) + 4096 * 20)
enum { SEQUENCES = 2, QUERY_HEADS = 4, GROUPS = 2, QUERIES = 3, KEYS = 8, WIDTH = 20 };

/* A tensor of a call. Pages are axis 0. */
struct part {
    rapt_tensor *tensor;
    int64_t count[3], row_bytes;
    bool is_output, is_paged;
};

/* Memory for eight steps of FAR; the test is skipped if there is no address space for it. */
char *far_map(void);

/* Runs the call with all parts near, then with each part far along each axis of up to eight: all outputs keep their
 * bytes. */
void check_parts(const struct part *parts, int count, void (*run)(void *call), void *call);

/* Contiguous, of float32, of int8. */
rapt_tensor drawn(int64_t batch, int64_t heads, int64_t tokens, int64_t dim);
rapt_tensor drawn_bytes(int64_t batch, int64_t heads, int64_t tokens, int64_t dim);

/* Batches become pages. */
rapt_tensor in_pages(rapt_tensor tensor);

/* Of float32, in a separate tensor. */
void set_scales(rapt_tensor *tensor, const rapt_tensor *scales);

#endif
