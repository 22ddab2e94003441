/* SPDX-License-Identifier: MIT
 * Runs graphs whose nodes are FLASH_ATTN_EXT, or no-ops. */
#include "backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend-impl.h"
#include "log.h"
#include "plans.h"
#include "threads.h"

struct rapt_ggml_counters rapt_ggml_counters;

struct state {
    struct rapt_ggml_plans plans;
    struct rapt_ggml_threads threads;
    void *workspace;
    size_t workspace_bytes;
    ggml_abort_callback should_abort;
    void *abort_data;
    pthread_t caller; /* of the running graph */
};

static ggml_guid_t guid(void) {
    static ggml_guid id = {0xe1, 0x4c, 0x75, 0x1f, 0x2a, 0x93, 0x4d, 0x08,
                           0xb7, 0x66, 0x0d, 0xc9, 0x58, 0x31, 0xfa, 0x72};
    return &id;
}

bool rapt_ggml_is_backend(ggml_backend_t backend) { return backend && ggml_guid_matches(backend->guid, guid()); }

static const char *name_of(ggml_backend_t backend) {
    (void)backend;
    return "rapt";
}

static void free_backend(ggml_backend_t backend) {
    struct state *s = backend->context;
    rapt_ggml_log_counters();
    rapt_ggml_threads_end(&s->threads);
    free(s->workspace);
    free(s);
    free(backend);
}

/* ggml calls its callback on the graph's thread, so only that one does here. */
static int should_stop(void *context) {
    const struct state *s = context;
    return pthread_equal(pthread_self(), s->caller) && s->should_abort(s->abort_data);
}

static bool reserve(struct state *s, size_t bytes) {
    if (bytes <= s->workspace_bytes)
        return true;
    free(s->workspace);
    s->workspace = malloc(bytes);
    s->workspace_bytes = s->workspace ? bytes : 0;
    return s->workspace != NULL;
}

/* Below about a million multiply-adds, waking threads costs more than it saves. */
static int threads_for(const struct state *s, const rapt_attention_desc *desc) {
    const double rows = (double)desc->batch * (double)desc->query_heads * (double)desc->query_length;
    const bool is_small = rows * (double)desc->kv_length * (double)(desc->head_dim + desc->value_dim) < 1 << 20;
    return is_small ? 1 : s->threads.count;
}

static enum ggml_status run_plan(struct state *s, const struct rapt_ggml_plan *entry, rapt_message *message) {
    rapt_run_options options = RAPT_RUN_OPTIONS_INIT;
    options.max_threads = threads_for(s, &entry->call.desc);
    options.parallel_for = rapt_ggml_threads_run, options.parallel_for_context = &s->threads;
    if (s->should_abort)
        options.should_stop = should_stop, options.should_stop_context = s;
    size_t bytes;
    rapt_status status = rapt_plan_workspace_bytes(&entry->plan, rapt_run_concurrency(&entry->plan, &options), &bytes);
    if (status == RAPT_OK && !reserve(s, bytes))
        status = RAPT_OUT_OF_MEMORY;
    if (status == RAPT_OK)
        status = rapt_run(&entry->plan, s->workspace, s->workspace_bytes, &options);
    if (status == RAPT_OK)
        return GGML_STATUS_SUCCESS;
    snprintf(message->text, sizeof message->text, "%s", rapt_status_text(status));
    return status == RAPT_STOPPED         ? GGML_STATUS_ABORTED
           : status == RAPT_OUT_OF_MEMORY ? GGML_STATUS_ALLOC_FAILED
                                          : GGML_STATUS_FAILED;
}

static enum ggml_status attend(struct state *s, const struct ggml_tensor *node) {
    rapt_message message = {""};
    struct rapt_ggml_call call;
    struct rapt_ggml_plan *entry = NULL;
    rapt_bindings bindings;
    const uint64_t plans = s->plans.made;
    if (rapt_ggml_describe(&call, node, &message))
        entry = rapt_ggml_plan_of(&s->plans, &call, &message);
    rapt_ggml_counters.calls++;
    rapt_ggml_counters.plans += s->plans.made - plans;
    enum ggml_status status = GGML_STATUS_FAILED;
    if (entry && rapt_ggml_bindings(&bindings, node, entry->slopes, &message) &&
        rapt_plan_bind(&entry->plan, &bindings, &message) == RAPT_OK)
        status = run_plan(s, entry, &message);
    if (status != GGML_STATUS_SUCCESS && status != GGML_STATUS_ABORTED) {
        rapt_ggml_counters.failed++;
        rapt_ggml_log(GGML_LOG_LEVEL_ERROR, "attention of %s failed: %s", node->name, message.text);
    }
    return status;
}

bool rapt_ggml_is_nothing(enum ggml_op op) {
    return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW || op == GGML_OP_PERMUTE ||
           op == GGML_OP_TRANSPOSE;
}

static enum ggml_status compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
    struct state *s = backend->context;
    s->caller = pthread_self();
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        const struct ggml_tensor *node = ggml_graph_node(graph, i);
        if (!(node->flags & GGML_TENSOR_FLAG_COMPUTE) || rapt_ggml_is_nothing(node->op) || ggml_is_empty(node))
            continue;
        if (node->op != GGML_OP_FLASH_ATTN_EXT) {
            rapt_ggml_log(GGML_LOG_LEVEL_ERROR, "%s is not an operation of this backend", ggml_op_desc(node));
            return GGML_STATUS_FAILED;
        }
        if (s->should_abort && s->should_abort(s->abort_data))
            return GGML_STATUS_ABORTED;
        const enum ggml_status status = attend(s, node);
        if (status != GGML_STATUS_SUCCESS)
            return status;
    }
    return GGML_STATUS_SUCCESS;
}

ggml_backend_t rapt_ggml_backend_new(ggml_backend_dev_t device) {
    struct state *s = calloc(1, sizeof *s);
    ggml_backend_t backend = calloc(1, sizeof *backend);
    if (!s || !backend) {
        free(s), free(backend);
        return NULL;
    }
    rapt_ggml_threads_begin(&s->threads);
    backend->guid = guid();
    backend->iface.get_name = name_of, backend->iface.free = free_backend, backend->iface.graph_compute = compute;
    backend->device = device, backend->context = s;
    return backend;
}

void rapt_ggml_set_n_threads(ggml_backend_t backend, int count) {
    if (rapt_ggml_is_backend(backend))
        rapt_ggml_threads_set_count(&((struct state *)backend->context)->threads, count);
}

void rapt_ggml_set_threadpool(ggml_backend_t backend, struct ggml_threadpool *pool) {
    struct state *s = rapt_ggml_is_backend(backend) ? backend->context : NULL;
    if (s && s->threads.cpu && s->threads.set_pool)
        s->threads.set_pool(s->threads.cpu, pool);
}

void rapt_ggml_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void *data) {
    struct state *s = rapt_ggml_is_backend(backend) ? backend->context : NULL;
    if (s)
        s->should_abort = callback, s->abort_data = data;
}
