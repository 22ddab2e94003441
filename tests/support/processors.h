/* SPDX-License-Identifier: MIT
 * What kernels ask about the processor, answered as by some. */
#ifndef RAPT_TESTS_PROCESSORS_H
#define RAPT_TESTS_PROCESSORS_H

#include <stdatomic.h>
#include <stdint.h>

#include "cpu.h"

/* Kernels find one of these from here on. Bits do not depend on it. */
static inline void pretend_processor(int64_t number) {
    static const struct {
        int requests;
        bool splits_vectors, loads_halves;
    } processors[] = {{RAPT_REQUESTS_FAR_INTO_L2, false, false}, /* Xeon */
                      {RAPT_REQUESTS_NEXT_PAGE, true, true},     /* Zen 3 */
                      {RAPT_REQUESTS_L1_AT_HAND, true, true},    /* Zen 4 */
                      {RAPT_REQUESTS_FAR_INTO_L1, false, true}}; /* Zen 5 */
    const int i = (int)(number % (int64_t)(sizeof processors / sizeof processors[0]));
    atomic_store(&rapt_requests_here, processors[i].requests);
    atomic_store(&rapt_splits_vectors, processors[i].splits_vectors);
    atomic_store(&rapt_loads_halves, processors[i].loads_halves);
}

#endif
