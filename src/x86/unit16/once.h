/* SPDX-License-Identifier: MIT
 * Tables of order 2 with kinds of their own, made when a call first asks for them. */
#ifndef RAPT_X86_UNIT16_ONCE_H
#define RAPT_X86_UNIT16_ONCE_H

#include <stdatomic.h>

#include "kernels.h"

struct unit16_once {
    _Atomic int state;
    struct rapt_table table;
};

/* The table of chains as `change` leaves it, or NULL where that returns false: once for all threads. */
static inline const struct rapt_table *unit16_once(struct unit16_once *once, const struct rapt_table *chains,
                                                   bool (*change)(struct rapt_table *table)) {
    enum { UNKNOWN, IN_HAND, ABSENT, PRESENT };
    int known = atomic_load_explicit(&once->state, memory_order_acquire);
    if (known == UNKNOWN && atomic_compare_exchange_strong(&once->state, &known, IN_HAND)) {
        once->table = *chains;
        known = change(&once->table) ? PRESENT : ABSENT;
        atomic_store_explicit(&once->state, known, memory_order_release);
    }
    while (known == IN_HAND) /* by another thread, for some microseconds */
        known = atomic_load_explicit(&once->state, memory_order_acquire);
    return known == PRESENT ? &once->table : NULL;
}

#endif
