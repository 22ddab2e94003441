/* SPDX-License-Identifier: MIT
 * The threads of a call. A process has one pool of threads that compute: where an OpenMP is loaded for all (PyTorch
 * does so), its threads work, and otherwise a pool of this module. */
#ifndef RAPT_PYTHON_THREADS_H
#define RAPT_PYTHON_THREADS_H

#include "rapt/rapt.h"

/* Options of a run on up to threads threads, of which there are no more than processors, or than the process computes
 * with; 0 = as many as it computes with. multiplications: how much there is to do; little is done on the calling
 * thread. */
rapt_run_options threads_options(int threads, double multiplications);

/* How many threads computes with, and by what: "openmp", "pool" or "fork" (a forked child, where it is 1). */
int threads_usual(void);
const char *threads_kind(void);

#endif
