/* SPDX-License-Identifier: MIT
 * A pool of threads for processes without OpenMP. */
#ifndef RAPT_PYTHON_POOL_H
#define RAPT_PYTHON_POOL_H

enum { POOL_MOST = 1024 };

/* Calls body(data) on the calling thread and on up to threads - 1 others, and waits for them. Where the pool is in use,
 * the calling thread works alone. */
void pool_run(void (*body)(void *data), void *data, int threads);

/* In the child of a fork: the parent's threads are not there. */
void pool_forget(void);

#endif
