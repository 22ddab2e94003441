/* SPDX-License-Identifier: MIT
 *
 * Each slot of a kernel table by itself, on cached data. */
#ifndef RAPT_BENCHMARKS_SLOTS_H
#define RAPT_BENCHMARKS_SLOTS_H

#include "kernels.h"
#include "memory.h"

enum { SLOT_MAX_DIM = 256 };

struct slots {
    const struct rapt_table *table;
    double seconds; /* for each line */
    bool list;      /* names only */
    int lines;      /* selected, of all tables */
    bool (*wanted)(const char *name);
};

/* A measurement: run processes `numbers` numbers, with so many floating-point operations if it consists of FMAs (0: it
 * does not). Prints a line under the name of the format, if selected. */
struct slot_case {
    void (*run)(void *context);
    void *context;
    double numbers, flops;
};
__attribute__((format(printf, 3, 4))) void slots_measure(struct slots *slots, const struct slot_case *what,
                                                         const char *format, ...);

/* Zeros, and numbers of either sign between 1/2 and 2, whose halves are such float16 numbers; they stay. */
float *slots_zeros(size_t count);
float *slots_numbers(size_t count);

/* One per slot or family of slots that tests/kernels/check.c tests, and for those that other tests do. */
#define RAPT_SLOT(name) void slots_##name(struct slots *slots);
#include "../tests/kernels/slots.def"
#undef RAPT_SLOT
void slots_pack(struct slots *slots);
void slots_product(struct slots *slots);

#endif
