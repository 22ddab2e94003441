/* SPDX-License-Identifier: MIT */
#include "threads.h"

static void take_share(struct ggml_tensor *node, int thread, int threads, void *context) {
    const struct rapt_ggml_threads *t = context;
    (void)node;
    for (int64_t i = thread; i < t->iterations; i += threads)
        t->body(t->argument, i);
}

/* A graph whose only node, a number that is never read, is computed by all threads at once. */
static bool make_graph(struct rapt_ggml_threads *t) {
    enum { NODES = 1 };
    const struct ggml_init_params memory = {
        .mem_size = 2 * ggml_tensor_overhead() + ggml_graph_overhead_custom(NODES, false), .no_alloc = true};
    t->context = ggml_init(memory);
    if (!t->context)
        return false;
    struct ggml_tensor *node =
        ggml_custom_4d(t->context, GGML_TYPE_F32, 1, 1, 1, 1, NULL, 0, take_share, GGML_N_TASKS_MAX, t);
    t->graph = ggml_new_graph_custom(t->context, NODES, false);
    ggml_build_forward_expand(t->graph, node);
    return true;
}

void rapt_ggml_threads_begin(struct rapt_ggml_threads *t) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    *t = (struct rapt_ggml_threads){.count = 1};
    if (!device || !make_graph(t))
        return;
    ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(device);
    t->cpu = ggml_backend_dev_init(device, NULL);
    t->set_count =
        (ggml_backend_set_n_threads_t)ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads");
    void *set_pool = ggml_backend_reg_get_proc_address(registry, "ggml_backend_cpu_set_threadpool");
    t->set_pool = (void (*)(ggml_backend_t, struct ggml_threadpool *))set_pool;
    rapt_ggml_threads_set_count(t, GGML_DEFAULT_N_THREADS);
}

void rapt_ggml_threads_end(struct rapt_ggml_threads *t) {
    if (t->cpu)
        ggml_backend_free(t->cpu);
    ggml_free(t->context);
}

void rapt_ggml_threads_set_count(struct rapt_ggml_threads *t, int count) {
    if (!t->cpu || !t->set_count || count < 1)
        return;
    t->count = count;
    t->set_count(t->cpu, count);
}

int rapt_ggml_threads_run(void *context, int64_t count, void (*body)(void *argument, int64_t i), void *argument) {
    struct rapt_ggml_threads *t = context;
    if (count == 1 || !t->cpu) {
        for (int64_t i = 0; i < count; i++)
            body(argument, i);
        return 0;
    }
    t->body = body, t->argument = argument, t->iterations = count;
    return ggml_backend_graph_compute(t->cpu, t->graph) != GGML_STATUS_SUCCESS;
}
