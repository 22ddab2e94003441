/* SPDX-License-Identifier: MIT */
#include "support/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

struct start {
    void (*body)(void *argument, int number);
    void *argument;
    int number;
};

static void *begin(void *argument) {
    const struct start *start = argument;
    start->body(start->argument, start->number);
    return NULL;
}

void pool_run(int threads, void (*body)(void *argument, int number), void *argument) {
    pthread_t handles[MOST_THREADS];
    struct start starts[MOST_THREADS];
    for (int t = 0; t < threads; t++) {
        starts[t] = (struct start){body, argument, t};
        if (t >= MOST_THREADS || pthread_create(&handles[t], NULL, begin, &starts[t]) != 0) {
            fputs("no thread\n", stderr);
            exit(1);
        }
    }
    for (int t = 0; t < threads; t++)
        pthread_join(handles[t], NULL);
}

struct loop {
    void (*task)(void *task_argument, int64_t i);
    void *task_argument;
    _Atomic int64_t next; /* counts down: tasks begin in reverse order */
};

static void take_tasks(void *argument, int number) {
    struct loop *loop = argument;
    int64_t i;
    (void)number;
    while ((i = atomic_fetch_sub(&loop->next, 1) - 1) >= 0)
        loop->task(loop->task_argument, i);
}

int pool_parallel_for(void *context, int64_t count, void (*task)(void *task_argument, int64_t i), void *task_argument) {
    struct pool *pool = context;
    struct loop loop = {task, task_argument, count};
    if (++pool->calls == pool->fail_at_call)
        return 1;
    pool->largest_count = count > pool->largest_count ? count : pool->largest_count;
    pool_run(pool->threads, take_tasks, &loop);
    return 0;
}
