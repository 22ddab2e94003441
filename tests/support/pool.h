/* SPDX-License-Identifier: MIT
 * Threads for tests that bring their own. */
#ifndef RAPT_TESTS_POOL_H
#define RAPT_TESTS_POOL_H

#include <stdint.h>

/* Calls body(argument, number) on each of so many threads, and joins them. */
void pool_run(int threads, void (*body)(void *argument, int number), void *argument);

/* A rapt_parallel_for over pool_run. */
struct pool {
    int threads;
    int64_t largest_count; /* set by the calls */
    int calls;
    int fail_at_call; /* this call, counted from 1, returns 1 and runs nothing; 0: none */
};
int pool_parallel_for(void *context, int64_t count, void (*task)(void *task_argument, int64_t i), void *task_argument);

#endif
