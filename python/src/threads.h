/* SPDX-License-Identifier: MIT
 * A call's threads. A process has one pool of computing threads: if an OpenMP is loaded globally (as PyTorch does), its
 * threads, otherwise a pool of this module. */
#ifndef RAPT_PYTHON_THREADS_H
#define RAPT_PYTHON_THREADS_H

#include "rapt/rapt.h"

/* Run options for up to threads threads, limited to the processors, or the usual threads if more; 0 = the usual number.
 * multiplications: the amount of work; little work runs on the calling thread. */
rapt_run_options threads_options(int threads, double multiplications);

/* The usual number of threads, and their kind: "openmp", "pool" or "fork" (a forked child, where it is 1). */
int threads_usual(void);
const char *threads_kind(void);

#endif
