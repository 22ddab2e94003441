/* SPDX-License-Identifier: MIT
 * Tables of orders 2 and 3 with kinds of their own, made when a call first asks for them. */
#ifndef RAPT_X86_UNIT16_ONCE_H
#define RAPT_X86_UNIT16_ONCE_H

#include <stdatomic.h>

#include "kernels.h"
#include "process.h"

struct unit16_once {
    _Atomic int state; /* UNKNOWN, ABSENT or PRESENT; below 0: a thread of process -state has it in hand */
    struct rapt_table table;
};

/* The table of chains as `change` leaves it, or NULL where that returns false: once for all threads. A child that was
 * forked while a thread of its parent had the table in hand has no such thread: it begins anew. */
static inline const struct rapt_table *unit16_once(struct unit16_once *once, const struct rapt_table *chains,
                                                   bool (*change)(struct rapt_table *table)) {
    enum { UNKNOWN, ABSENT, PRESENT };
    int known = atomic_load_explicit(&once->state, memory_order_acquire);
    while (known <= UNKNOWN) { /* for some microseconds, where another thread has it in hand */
        const int own = -rapt_process();
        if (known != own && atomic_compare_exchange_strong(&once->state, &known, own)) {
            once->table = *chains;
            known = change(&once->table) ? PRESENT : ABSENT;
            atomic_store_explicit(&once->state, known, memory_order_release);
        } else {
            known = atomic_load_explicit(&once->state, memory_order_acquire);
        }
    }
    return known == PRESENT ? &once->table : NULL;
}

#endif
