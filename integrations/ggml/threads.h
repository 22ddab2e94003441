/* SPDX-License-Identifier: MIT
 * ggml's threads. They run rapt's work as a graph of one custom operation on ggml's CPU backend: with OpenMP or
 * without, in the caller's thread pool or its own. */
#ifndef RAPT_GGML_THREADS_H
#define RAPT_GGML_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "ggml-backend.h"
#include "ggml-cpu.h"

struct rapt_ggml_threads {
    ggml_backend_t cpu; /* NULL: only the calling thread */
    ggml_backend_set_n_threads_t set_count;
    void (*set_pool)(ggml_backend_t cpu, struct ggml_threadpool *pool);
    struct ggml_context *context;
    struct ggml_cgraph *graph;
    int count;
    void (*body)(void *argument, int64_t i); /* the running loop */
    void *argument;
    int64_t iterations;
};

void rapt_ggml_threads_begin(struct rapt_ggml_threads *threads);
void rapt_ggml_threads_end(struct rapt_ggml_threads *threads);
void rapt_ggml_threads_set_count(struct rapt_ggml_threads *threads, int count);

/* A rapt_parallel_for; context is a struct rapt_ggml_threads. */
int rapt_ggml_threads_run(void *context, int64_t count, void (*body)(void *argument, int64_t i), void *argument);

#endif
