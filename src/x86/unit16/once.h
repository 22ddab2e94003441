/* SPDX-License-Identifier: MIT
 * Tables of orders 2 and 3 with their own kinds, built when a call first asks for them. */
#ifndef RAPT_X86_UNIT16_ONCE_H
#define RAPT_X86_UNIT16_ONCE_H

#include <stdatomic.h>

#include "kernels.h"
#include "process.h"

struct unit16_once {
    _Atomic int state; /* UNKNOWN, ABSENT or PRESENT; below 0: a thread of process -state is building it */
    struct rapt_table table;
};

/* The table of chains as `change` leaves it, or NULL where that returns false: once for all threads. A child forked
 * while a thread of its parent was building the table has no such thread: it starts over. */
static inline const struct rapt_table *unit16_once(struct unit16_once *once, const struct rapt_table *chains,
                                                   bool (*change)(struct rapt_table *table)) {
    enum { UNKNOWN, ABSENT, PRESENT };
    int known = atomic_load_explicit(&once->state, memory_order_acquire);
    while (known <= UNKNOWN) { /* for some microseconds, while another thread builds it */
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
