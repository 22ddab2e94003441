/* SPDX-License-Identifier: MIT
 * A host with its own threads, three ways: rapt runs on the host's parallel loop (rapt_run with a callback), the host's
 * threads join it (rapt_join), or the host runs rapt's tasks itself (rapt_run_task). None requires OpenMP; all give the
 * bits of a serial run. */
#include <rapt/rapt.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, HEADS = 8, TOKENS = 4, HEAD_DIM = 64, KEYS = 9000 };

static float query[HEADS][TOKENS][HEAD_DIM], key[HEADS][KEYS][HEAD_DIM], value[HEADS][KEYS][HEAD_DIM];
static float out[4][HEADS][TOKENS][HEAD_DIM];

static void require(rapt_status status, const char *what) {
    if (status != RAPT_OK) {
        fprintf(stderr, "%s: %s\n", what, rapt_status_text(status));
        exit(1);
    }
}

/* ---- the host's thread pool; here it simply starts and joins threads */

struct job {
    void (*body)(void *argument, int64_t i);
    void *argument;
    int64_t count;
    _Atomic int64_t next;
};

static void *take_work(void *argument) {
    struct job *job = argument;
    int64_t i;
    while ((i = atomic_fetch_add(&job->next, 1)) < job->count)
        job->body(job->argument, i);
    return NULL;
}

static int host_parallel_for(void *context, int64_t count, void (*body)(void *argument, int64_t i), void *argument) {
    struct job job = {.body = body, .argument = argument, .count = count};
    pthread_t threads[THREADS];
    int started = 0;
    (void)context;
    while (started < THREADS && pthread_create(&threads[started], NULL, take_work, &job) == 0)
        started++;
    take_work(&job); /* the calling thread helps, or does everything if no thread starts */
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* ---- the three ways */

struct attention {
    rapt_plan plan;
    void *workspace;
    size_t bytes;
    int32_t phase;
};

static struct attention prepare(float (*result)[TOKENS][HEAD_DIM]) {
    struct attention attention;
    rapt_message message;
    rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT;
    desc.batch = 1;
    desc.query_heads = desc.kv_heads = HEADS;
    desc.query_length = TOKENS;
    desc.kv_length = KEYS;
    desc.head_dim = HEAD_DIM;
    desc.query = rapt_input_bhsd(query[0][0], 1, HEADS, TOKENS, HEAD_DIM);
    desc.key = rapt_input_bhsd(key[0][0], 1, HEADS, KEYS, HEAD_DIM);
    desc.value = rapt_input_bhsd(value[0][0], 1, HEADS, KEYS, HEAD_DIM);
    desc.out = rapt_output_bhsd(result[0][0], 1, HEADS, TOKENS, HEAD_DIM);
    rapt_status status = rapt_plan_init(&attention.plan, &desc, &message);
    require(status, status == RAPT_OK ? "plan" : message.text);
    /* A scratch slot per task that may run at once: the threads and their caller. */
    require(rapt_plan_workspace_bytes(&attention.plan, THREADS + 1, &attention.bytes), "workspace");
    attention.workspace = malloc(attention.bytes);
    require(attention.workspace ? RAPT_OK : RAPT_OUT_OF_MEMORY, "workspace");
    return attention;
}

static void run_serially(void) {
    struct attention attention = prepare(out[0]);
    rapt_run_options options = {.struct_size = sizeof options, .max_threads = 1};
    require(rapt_run(&attention.plan, attention.workspace, attention.bytes, &options), "serial run");
    free(attention.workspace);
}

static void run_on_host_loop(void) {
    struct attention attention = prepare(out[1]);
    rapt_run_options options = {.struct_size = sizeof options, .parallel_for = host_parallel_for};
    require(rapt_run(&attention.plan, attention.workspace, attention.bytes, &options), "parallel-for");
    free(attention.workspace);
}

/* Each thread joins once, and stays until no task is left. */
static void join_phase(void *argument, int64_t i) {
    struct attention *attention = argument;
    (void)i;
    require(rapt_join(&attention->plan, attention->workspace, attention->phase), "join");
}

static void run_by_joining(void) {
    struct attention attention = prepare(out[3]);
    require(rapt_prepare(&attention.plan, attention.workspace, attention.bytes), "prepare");
    for (attention.phase = 0; attention.phase < rapt_phase_count(&attention.plan); attention.phase++)
        host_parallel_for(NULL, THREADS, join_phase, &attention); /* returns when all have returned */
    free(attention.workspace);
}

static void run_one_task(void *argument, int64_t i) {
    struct attention *attention = argument;
    require(rapt_run_task(&attention->plan, attention->workspace, attention->phase, i), "task");
}

static void run_task_by_task(void) {
    struct attention attention = prepare(out[2]);
    require(rapt_prepare(&attention.plan, attention.workspace, attention.bytes), "prepare");
    for (attention.phase = 0; attention.phase < rapt_phase_count(&attention.plan); attention.phase++) {
        int64_t tasks = rapt_task_count(&attention.plan, attention.phase);
        printf("phase %d: %lld tasks on %d threads\n", attention.phase, (long long)tasks, THREADS + 1);
        host_parallel_for(NULL, tasks, run_one_task, &attention); /* returns when all are done */
    }
    free(attention.workspace);
}

static void fill(float *numbers, size_t count) {
    static unsigned seed = 1;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608.0f - 1.0f;
}

int main(void) {
    fill(query[0][0], sizeof query / sizeof(float));
    fill(key[0][0], sizeof key / sizeof(float));
    fill(value[0][0], sizeof value / sizeof(float));
    run_serially();
    run_on_host_loop();
    run_task_by_task();
    run_by_joining();
    if (memcmp(out[0], out[1], sizeof out[0]) != 0 || memcmp(out[0], out[2], sizeof out[0]) != 0 ||
        memcmp(out[0], out[3], sizeof out[0]) != 0) {
        puts("the results DIFFER");
        return 1;
    }
    puts("serial, parallel-for, own tasks and joining: the same bits");
    return 0;
}
