/* SPDX-License-Identifier: MIT
 * A pool of threads for processes without OpenMP. */
#ifndef RAPT_PYTHON_POOL_H
#define RAPT_PYTHON_POOL_H

enum { POOL_MOST = 1024 };

/* Calls body(data) on the calling thread and up to threads - 1 others, and waits for them. If the pool is busy, the
 * calling thread works alone. */
void pool_run(void (*body)(void *data), void *data, int threads);

/* In a forked child: the parent's threads do not exist. */
void pool_forget(void);

#endif
