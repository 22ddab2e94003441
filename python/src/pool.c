/* SPDX-License-Identifier: MIT
 * Threads start at first use, and sleep soon after a run: others compute in between. */
#define _DEFAULT_SOURCE /* sigset_t */
#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SPINS = 4000 }; /* tens of microseconds */

static struct {
    pthread_mutex_t in_use, mutex;
    pthread_cond_t begin, end;
    int threads; /* started ones */
    void (*body)(void *data);
    void *data;
    int places;      /* threads that may still join this run */
    int working;     /* those that have, and have not ended */
    atomic_uint run; /* number of the run */
} pool = {PTHREAD_MUTEX_INITIALIZER,
          PTHREAD_MUTEX_INITIALIZER,
          PTHREAD_COND_INITIALIZER,
          PTHREAD_COND_INITIALIZER,
          0,
          0,
          0,
          0,
          0,
          0};

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Called and left with pool.mutex held. */
static void take_part(void) {
    if (pool.places <= 0)
        return;
    pool.places--;
    pool.working++;
    void (*body)(void *) = pool.body;
    void *data = pool.data;
    pthread_mutex_unlock(&pool.mutex);
    body(data);
    pthread_mutex_lock(&pool.mutex);
    if (--pool.working == 0)
        pthread_cond_signal(&pool.end);
}

static void *serve(void *unused) {
    unsigned seen = 0;
    (void)unused;
    pthread_mutex_lock(&pool.mutex);
    for (;;) {
        while (seen == atomic_load(&pool.run))
            pthread_cond_wait(&pool.begin, &pool.mutex);
        seen = atomic_load(&pool.run);
        take_part();
        pthread_mutex_unlock(&pool.mutex);
        for (int i = 0; i < SPINS && seen == atomic_load_explicit(&pool.run, memory_order_relaxed); i++)
            pause_briefly();
        pthread_mutex_lock(&pool.mutex);
    }
    return NULL;
}

/* Signals are for Python's threads. Fewer threads than requested do the work, too. */
static void start(int threads) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.threads < threads && pool.threads < POOL_MOST && pthread_create(&thread, NULL, serve, NULL) == 0) {
        pthread_detach(thread);
        pool.threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pool_run(void (*body)(void *data), void *data, int threads) {
    if (threads <= 1 || pthread_mutex_trylock(&pool.in_use) != 0) {
        body(data);
        return;
    }
    pthread_mutex_lock(&pool.mutex);
    start(threads - 1);
    pool.body = body;
    pool.data = data;
    pool.places = threads - 1;
    atomic_fetch_add(&pool.run, 1);
    pthread_cond_broadcast(&pool.begin);
    pthread_mutex_unlock(&pool.mutex);
    body(data); /* on return, all work has begun */
    pthread_mutex_lock(&pool.mutex);
    pool.places = 0;
    while (pool.working > 0)
        pthread_cond_wait(&pool.end, &pool.mutex);
    pthread_mutex_unlock(&pool.mutex);
    pthread_mutex_unlock(&pool.in_use);
}

void pool_forget(void) {
    pthread_mutex_init(&pool.in_use, NULL);
    pthread_mutex_init(&pool.mutex, NULL);
    pthread_cond_init(&pool.begin, NULL);
    pthread_cond_init(&pool.end, NULL);
    pool.threads = pool.places = pool.working = 0;
}
