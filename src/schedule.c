/* SPDX-License-Identifier: MIT
 * Runs the tasks of a plan: OpenMP, the caller's parallel-for, or serial. The
 * only file that starts threads. */
#include "schedule.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include "attend/attend.h"
#include "fpenv.h"
#include "merge.h"
#include "plan/workspace.h"
#include "process.h"

int32_t rapt_phases(const struct rapt_plan_body *plan) { return plan->totals.all_merges > 0 ? RAPT_PHASES : 1; }

int64_t rapt_tasks(const struct rapt_plan_body *plan, int32_t phase) {
    return phase == RAPT_PHASE_ATTEND ? plan->totals.all_tasks : plan->totals.all_merges;
}

/* A task, or several that share the same keys. */
struct tasks {
    int64_t first, count;
};

static void run_tasks(const struct rapt_run *run, char *slot, int32_t phase, struct tasks tasks, int64_t next_task) {
    rapt_fpenv environment = rapt_fpenv_enter();
    if (phase == RAPT_PHASE_ATTEND)
        rapt_attend(run, slot, tasks.first, tasks.count, next_task);
    else
        rapt_merge(run, slot, tasks.first);
    rapt_fpenv_leave(environment);
}

rapt_status rapt_schedule_task(const struct rapt_plan_body *plan, void *memory, int32_t phase, int64_t task) {
    struct rapt_workspace *w = rapt_workspace_of(plan, memory);
    if (!w)
        return RAPT_NOT_PREPARED;
    const int64_t slot = rapt_workspace_take(w);
    if (slot < 0)
        return RAPT_BUSY;
    const struct rapt_run run = rapt_run_of(plan, w);
    run_tasks(&run, rapt_workspace_slot(w, slot), phase, (struct tasks){task, 1}, -1);
    rapt_workspace_give(w, slot);
    return RAPT_OK;
}

/* Takes tasks until none is left. */
typedef void (*work_body)(void *argument, int64_t number);

static bool should_stop(const rapt_run_options *options) {
    return options->should_stop && options->should_stop(options->should_stop_context) != 0;
}

struct worker {
    const struct rapt_plan_body *plan;
    struct rapt_workspace *workspace;
    int32_t phase;
    const rapt_run_options *options;
};

/* How many tasks a worker takes at once, from `first` on: splits of the same keys, since the first and last keys of a
 * run are slower than those between, for all heads that take turns. It takes a share of what is left, so that the last
 * tasks go to whoever is free; one split if the caller has should_stop; and near the end single heads, which take
 * longer but, on more workers, end sooner. */
static int64_t tasks_from(const struct worker *worker, const struct rapt_run *run, int64_t first, int64_t count) {
    enum { SHARES = 4, /* for each worker */
           SLOWER = 2  /* times as long, as measured */ };
    const struct rapt_plan_body *plan = worker->plan;
    if (worker->phase != RAPT_PHASE_ATTEND || first >= count)
        return 1;
    const struct rapt_work work = rapt_work_of_task(plan, run->works, RAPT_PHASE_ATTEND, first);
    const int64_t slots = worker->workspace->slots, left = count - first;
    const int64_t number = first - work.first_task, of_keys = work.splits - number / work.heads % work.splits;
    if (SLOWER * left < work.heads * slots)
        return 1; /* and from here on, as less and less is left */
    RAPT_ASSUME(number % work.heads == 0);
    if (worker->options->should_stop)
        return work.heads;
    const int64_t share = slots == 1 ? left : left / (SHARES * slots) + 1;
    const int64_t splits = rapt_quotient_up(share, work.heads);
    return work.heads * (splits < of_keys ? splits : of_keys);
}

static struct tasks take_tasks(const struct worker *worker, const struct rapt_run *run, int64_t count) {
    _Atomic int64_t *next = &worker->workspace->next[worker->phase];
    struct tasks tasks = {atomic_load_explicit(next, memory_order_relaxed), 1};
    do
        tasks.count = tasks_from(worker, run, tasks.first, count);
    while (!atomic_compare_exchange_weak_explicit(next, &tasks.first, tasks.first + tasks.count, memory_order_relaxed,
                                                  memory_order_relaxed));
    return tasks;
}

/* One stop stops all workers. */
static bool stops(const struct worker *worker) {
    atomic_bool *stopped = &worker->workspace->stopped;
    if (!atomic_load_explicit(stopped, memory_order_relaxed) && should_stop(worker->options))
        atomic_store_explicit(stopped, true, memory_order_relaxed);
    return atomic_load_explicit(stopped, memory_order_relaxed);
}

/* Takes tasks until none is left. While many are left, each worker also holds its next task and prefetches its data;
 * the last ones go to whoever is free, so there the next task is a guess. */
static void work(void *argument, int64_t number) {
    enum { MANY = 4 }; /* tasks for each worker */
    const struct worker *worker = argument;
    struct rapt_workspace *w = worker->workspace;
    (void)number;
    const int64_t slot = rapt_workspace_take(w), count = rapt_tasks(worker->plan, worker->phase);
    const struct rapt_run run = rapt_run_of(worker->plan, w);
    if (slot < 0)
        return;
    for (struct tasks tasks = take_tasks(worker, &run, count); tasks.first < count && !stops(worker);) {
        const bool many = count - tasks.first > MANY * w->slots;
        struct tasks next = {atomic_load_explicit(&w->next[worker->phase], memory_order_relaxed), 1};
        if (many)
            next = take_tasks(worker, &run, count);
        run_tasks(&run, rapt_workspace_slot(w, slot), worker->phase, tasks, next.first);
        tasks = many ? next : take_tasks(worker, &run, count);
    }
    rapt_workspace_give(w, slot);
}

rapt_status rapt_schedule_join(const struct rapt_plan_body *plan, void *memory, int32_t phase) {
    static const rapt_run_options never_stop = RAPT_RUN_OPTIONS_INIT;
    struct worker worker = {plan, rapt_workspace_of(plan, memory), phase, &never_stop};
    if (!worker.workspace)
        return RAPT_NOT_PREPARED;
    work(&worker, 0);
    return RAPT_OK;
}

#ifdef _OPENMP
/* A forked child inherits the bookkeeping of a thread pool but not its threads, and libgomp would wait for them
 * forever. A child is any process but the one that loaded the library. */
static int loading_process;
__attribute__((constructor)) static void remember_process(void) { loading_process = rapt_process(); }
static int is_forked_child(void) { return loading_process != rapt_process(); }

static int openmp_threads(void) {
    return omp_get_max_threads() < omp_get_thread_limit() ? omp_get_max_threads() : omp_get_thread_limit();
}

static int usable_threads(const rapt_run_options *options) {
    const bool lost = is_forked_child() && !(options->flags & RAPT_RUN_FORK_SAFE);
    return omp_in_parallel() || lost ? 1 : openmp_threads();
}

static void run_openmp(work_body body, void *argument, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int number = 0; number < threads; number++)
        body(argument, number);
}
#else
static int usable_threads(const rapt_run_options *options) {
    (void)options;
    return 1;
}
static void run_openmp(work_body body, void *argument, int threads) {
    (void)threads;
    body(argument, 0);
}
#endif

int rapt_schedule_threads(void) {
#ifdef _OPENMP
    return openmp_threads();
#else
    return 0;
#endif
}

int rapt_schedule_workers(const rapt_run_options *options, int64_t most, bool is_small) {
    int64_t workers = most < INT32_MAX ? most : INT32_MAX;
    if (options->parallel_for == NULL) {
        int usable = is_small ? 1 : usable_threads(options);
        workers = usable < workers ? usable : workers;
    }
    if (options->max_threads > 0 && options->max_threads < workers)
        workers = options->max_threads;
    return (int)workers;
}

/* How many threads a caller's parallel-for probably has. */
static int64_t processors(void) {
#if defined(_OPENMP)
    return omp_get_num_procs();
#else
    return rapt_processors();
#endif
}

int64_t rapt_schedule_concurrency(const struct rapt_plan_body *plan, const rapt_run_options *options) {
    int64_t workers = rapt_schedule_workers(options, plan->totals.all_tasks, plan->is_small);
    if (options->parallel_for && options->max_threads == 0 && workers > processors())
        workers = processors();
    return workers > 0 ? workers : 1;
}

/* Calls body(argument, number) for up to `workers` numbers from 0 on, concurrently, and waits for all. */
static rapt_status schedule_work(const rapt_run_options *options, int workers, int64_t tasks, work_body body,
                                 void *argument) {
    int64_t count = tasks < workers ? tasks : workers;
    if (options->parallel_for) {
        if (options->parallel_for(options->parallel_for_context, count, body, argument) != 0)
            return RAPT_PARALLEL_FOR_FAILED;
    } else if (count > 1) {
        run_openmp(body, argument, workers); /* libgomp ends threads that a smaller team leaves idle */
    } else {
        body(argument, 0);
    }
    return RAPT_OK;
}

rapt_status rapt_schedule_run(const struct rapt_plan_body *plan, void *memory, const rapt_run_options *options) {
    struct rapt_workspace *w = rapt_workspace_of(plan, memory);
    const int workers = plan->totals.all_tasks > 0 ? rapt_schedule_workers(options, w->slots, plan->is_small) : 0;
    for (int32_t phase = 0; workers > 0 && phase < rapt_phases(plan); phase++) {
        struct worker worker = {plan, w, phase, options};
        rapt_status status = schedule_work(options, workers, rapt_tasks(plan, phase), work, &worker);
        if (status != RAPT_OK)
            return status;
        if (atomic_load_explicit(&w->stopped, memory_order_relaxed))
            return RAPT_STOPPED;
        if (atomic_load_explicit(&w->next[phase], memory_order_relaxed) < rapt_tasks(plan, phase))
            return RAPT_PARALLEL_FOR_FAILED; /* it left tasks undone */
    }
    return RAPT_OK;
}

/* ---- tasks without a plan */

struct queue {
    const rapt_run_options *options;
    rapt_run_one run;
    const void *argument;
    int64_t tasks;
    _Atomic int64_t next;
    atomic_bool stopped;
};

/* should_stop runs in the caller's floating-point environment. */
static void work_off(void *argument, int64_t number) {
    struct queue *queue = argument;
    int64_t task;
    (void)number;
    while ((task = atomic_fetch_add_explicit(&queue->next, 1, memory_order_relaxed)) < queue->tasks) {
        if (atomic_load_explicit(&queue->stopped, memory_order_relaxed) || should_stop(queue->options)) {
            atomic_store_explicit(&queue->stopped, true, memory_order_relaxed);
            return;
        }
        const rapt_fpenv environment = rapt_fpenv_enter();
        queue->run(queue->argument, task);
        rapt_fpenv_leave(environment);
    }
}

rapt_status rapt_schedule_tasks(const rapt_run_options *options, int64_t tasks, bool is_small, rapt_run_one run,
                                const void *argument) {
    const int workers = rapt_schedule_workers(options, tasks, is_small);
    struct queue queue = {.options = options, .run = run, .argument = argument, .tasks = tasks};
    atomic_init(&queue.next, 0);
    atomic_init(&queue.stopped, false);
    const rapt_status status = schedule_work(options, workers, tasks, work_off, &queue);
    if (status == RAPT_OK && atomic_load_explicit(&queue.stopped, memory_order_relaxed))
        return RAPT_STOPPED;
    if (status == RAPT_OK && atomic_load_explicit(&queue.next, memory_order_relaxed) < tasks)
        return RAPT_PARALLEL_FOR_FAILED; /* it left tasks undone */
    return status;
}
