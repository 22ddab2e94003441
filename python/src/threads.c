/* SPDX-License-Identifier: MIT
 * OpenMP by the functions that GCC's code calls, which libgomp and LLVM's and Intel's libraries have: looked up in the
 * process, so that nothing is linked and wheels bring no second copy. */
#define _GNU_SOURCE /* RTLD_DEFAULT, sched_getaffinity */
#include "threads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "pool.h"

enum { SMALL_WORK = 1 << 20 }; /* multiply-adds below which waking a thread costs more */

static struct {
    void (*parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
    int (*max_threads)(void);
    int (*in_parallel)(void);
} openmp;

/* libgomp waits forever for threads that a fork left in the parent. */
static atomic_bool is_child;

static void after_fork(void) {
    atomic_store(&is_child, true);
    pool_forget();
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }

/* It may be loaded after this module, so the search repeats until found. */
static bool has_openmp(void) {
    static atomic_bool found;
    if (atomic_load_explicit(&found, memory_order_acquire))
        return true;
    *(void **)&openmp.max_threads = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    *(void **)&openmp.in_parallel = dlsym(RTLD_DEFAULT, "omp_in_parallel");
    *(void **)&openmp.parallel = dlsym(RTLD_DEFAULT, "GOMP_parallel");
    if (!openmp.parallel || !openmp.max_threads || !openmp.in_parallel)
        return false;
    atomic_store_explicit(&found, true, memory_order_release);
    return true;
}

static int processors(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* OMP_NUM_THREADS limits the pool like everything else that computes. */
static int pool_threads(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    const int limit = text ? atoi(text) : 0;
    return limit > 0 && limit < POOL_MOST ? limit : processors();
}

int threads_usual(void) {
    if (atomic_load_explicit(&is_child, memory_order_relaxed))
        return 1;
    if (has_openmp())
        return openmp.in_parallel() ? 1 : openmp.max_threads();
    return pool_threads();
}

/* More than the processors would only wait for each other, and libgomp ends the process if one does not start. If
 * OpenMP is set to more, they exist anyway. */
static int threads_of(int asked) {
    if (asked <= 1)
        return asked;
    const int usual = threads_usual();
    if (asked <= usual)
        return asked;
    const int there = processors(), most = there > usual ? there : usual;
    return asked < most ? asked : most;
}

const char *threads_kind(void) { return atomic_load(&is_child) ? "fork" : has_openmp() ? "openmp" : "pool"; }

struct job {
    void (*task)(void *argument, int64_t i);
    void *argument;
    int64_t count;
    _Atomic int64_t next;
};

static void work(void *data) {
    struct job *job = data;
    int64_t i;
    while ((i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->count)
        job->task(job->argument, i);
}

/* libgomp ends threads that a smaller team leaves idle, so its team is always as large as elsewhere. In a forked child
 * the pool starts over; it works only if a number of threads is requested. */
static int parallel_for(void *context, int64_t count, void (*task)(void *argument, int64_t i), void *argument) {
    struct job job = {.task = task, .argument = argument, .count = count};
    (void)context;
    atomic_init(&job.next, 0);
    if (count <= 1)
        work(&job);
    else if (!atomic_load_explicit(&is_child, memory_order_relaxed) && has_openmp() && !openmp.in_parallel()) {
        const int usual = openmp.max_threads();
        openmp.parallel(work, &job, (unsigned)(count > usual ? count : usual), 0);
    } else
        pool_run(work, &job, (int)count);
    return 0;
}

rapt_run_options threads_options(int threads, double multiplications) {
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    options.parallel_for = parallel_for;
    options.max_threads = threads > 0 ? threads_of(threads) : multiplications < SMALL_WORK ? 1 : threads_usual();
    return options;
}
