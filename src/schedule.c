/* SPDX-License-Identifier: MIT
 * Runs the tasks of a plan: OpenMP, the caller's parallel-for, or serial. The
 * only file that knows of threads. */
#include "schedule.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#define RAPT_HAS_FORK 1
#endif

#include "fpenv.h"
#include "task.h"

enum { WORKSPACE_MAGIC = 0x72617074 };

/* At the first multiple of 64 of the workspace. */
struct workspace {
    uint64_t magic;
    int64_t slots;
    _Atomic int64_t next[2]; /* the next task of each phase */
    char *states, *scratch;
    size_t slot_bytes;
    _Atomic unsigned char busy[]; /* [slots] */
};

static struct workspace *workspace_at(void *memory) {
    uintptr_t address = (uintptr_t)memory + (RAPT_VECTOR_BYTES - 1);
    return (struct workspace *)(address - address % RAPT_VECTOR_BYTES);
}

static size_t round_up(size_t bytes) { return (bytes + RAPT_VECTOR_BYTES - 1) / RAPT_VECTOR_BYTES * RAPT_VECTOR_BYTES; }

static size_t header_bytes(int64_t slots) { return round_up(sizeof(struct workspace) + (size_t)slots); }

rapt_status rapt_workspace_bytes(const struct rapt_attention *a, int64_t slots, size_t *bytes) {
    struct rapt_workspace_layout layout;
    size_t slot_bytes = rapt_layout_scratch(a).slot_bytes, scratch, total;
    if (slots > INT32_MAX || !rapt_layout_workspace(a, &layout) ||
        __builtin_mul_overflow(slot_bytes, (size_t)slots, &scratch) ||
        __builtin_add_overflow(scratch, layout.slots, &total) ||
        __builtin_add_overflow(total, header_bytes(slots) + RAPT_VECTOR_BYTES - 1, &total))
        return RAPT_SIZE_OVERFLOW;
    *bytes = total;
    return RAPT_OK;
}

/* The largest number of slots that fits; a slot takes slot_bytes and one byte of the header. */
static int64_t slots_in(const struct rapt_attention *a, size_t bytes) {
    size_t slot_bytes = rapt_layout_scratch(a).slot_bytes, one;
    if (rapt_workspace_bytes(a, 1, &one) != RAPT_OK || one > bytes)
        return 0;
    int64_t slots = (int64_t)(1 + (bytes - one) / slot_bytes);
    if (slots > a->tasks)
        slots = a->tasks > 0 ? a->tasks : 1;
    if (slots > INT32_MAX)
        slots = INT32_MAX;
    while (slots > 1 && (rapt_workspace_bytes(a, slots, &one) != RAPT_OK || one > bytes))
        slots--;
    return slots;
}

rapt_status rapt_workspace_prepare(const struct rapt_attention *a, void *memory, size_t bytes) {
    int64_t slots = slots_in(a, bytes);
    if (slots == 0)
        return RAPT_WORKSPACE_TOO_SMALL;
    struct workspace *w = workspace_at(memory);
    struct rapt_workspace_layout layout;
    rapt_layout_workspace(a, &layout);
    w->slots = slots;
    w->slot_bytes = rapt_layout_scratch(a).slot_bytes;
    w->states = (char *)w + header_bytes(slots);
    w->scratch = w->states + layout.slots;
    for (int phase = 0; phase < 2; phase++)
        atomic_init(&w->next[phase], 0);
    for (int64_t slot = 0; slot < slots; slot++)
        atomic_init(&w->busy[slot], 0);
    w->magic = WORKSPACE_MAGIC;
    return RAPT_OK;
}

int32_t rapt_phases(const struct rapt_attention *a) { return a->ranges > 1 ? 2 : 1; }

int64_t rapt_tasks(const struct rapt_attention *a, int32_t phase) {
    return phase == 0 ? a->tasks : a->desc.batch * a->desc.kv_heads;
}

static void run_in_slot(const struct rapt_attention *a, struct workspace *w, int64_t slot, int32_t phase, int64_t task,
                        int64_t next_task) {
    char *scratch = w->scratch + (size_t)slot * w->slot_bytes;
    rapt_fpenv environment = rapt_fpenv_enter();
    if (phase == 0)
        rapt_attend(a, w->states, scratch, task, next_task);
    else
        rapt_merge(a, w->states, scratch, task);
    rapt_fpenv_leave(environment);
}

static int64_t take_slot(struct workspace *w) {
    for (int64_t slot = 0; slot < w->slots; slot++)
        if (!atomic_exchange_explicit(&w->busy[slot], 1, memory_order_acquire))
            return slot;
    return -1;
}

static void give_slot(struct workspace *w, int64_t slot) {
    atomic_store_explicit(&w->busy[slot], 0, memory_order_release);
}

rapt_status rapt_schedule_task(const struct rapt_attention *a, void *memory, int32_t phase, int64_t task) {
    struct workspace *w = workspace_at(memory);
    if (w->magic != WORKSPACE_MAGIC)
        return RAPT_INVALID_VALUE;
    int64_t slot = take_slot(w);
    if (slot < 0)
        return RAPT_BUSY;
    run_in_slot(a, w, slot, phase, task, a->tasks);
    give_slot(w, slot);
    return RAPT_OK;
}

struct worker {
    const struct rapt_attention *attention;
    struct workspace *workspace;
    int32_t phase;
};

static int64_t take_task(const struct worker *worker) {
    return atomic_fetch_add_explicit(&worker->workspace->next[worker->phase], 1, memory_order_relaxed);
}

/* Takes tasks until none is left; workers are at most as many as slots. As long as there are many, each takes one
 * more than it works on, whose data set out meanwhile; the last ones go to who has time, and are guessed. */
static void work(void *argument, int64_t number) {
    enum { MANY = 4 }; /* tasks for each worker */
    const struct worker *worker = argument;
    struct workspace *w = worker->workspace;
    (void)number;
    int64_t slot = take_slot(w);
    if (slot < 0)
        return;
    const int64_t count = rapt_tasks(worker->attention, worker->phase);
    for (int64_t task = take_task(worker); task < count;) {
        const bool many = count - task > MANY * w->slots;
        const int64_t next =
            many ? take_task(worker) : atomic_load_explicit(&w->next[worker->phase], memory_order_relaxed);
        run_in_slot(worker->attention, w, slot, worker->phase, task, next);
        task = many ? next : take_task(worker);
    }
    give_slot(w, slot);
}

#ifdef _OPENMP
/* A forked child inherits the idea of a thread pool but not its threads, and
 * libgomp would wait for them for ever. Whoever made the pool, a child is a
 * process other than the one that loaded the library. */
#ifdef RAPT_HAS_FORK
static int64_t loading_process;
__attribute__((constructor)) static void remember_process(void) { loading_process = getpid(); }
static int is_forked_child(void) { return loading_process != getpid(); }
#else
static int is_forked_child(void) { return 0; }
#endif

static int usable_threads(void) { return omp_in_parallel() || is_forked_child() ? 1 : omp_get_max_threads(); }

static void run_openmp(rapt_work body, void *argument, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int number = 0; number < threads; number++)
        body(argument, number);
}
#else
static int usable_threads(void) { return 1; }
static void run_openmp(rapt_work body, void *argument, int threads) {
    (void)threads;
    body(argument, 0);
}
#endif

int rapt_schedule_threads(void) {
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 0;
#endif
}

int rapt_schedule_workers(const rapt_run_options *options, int64_t most, bool is_small) {
    int64_t workers = most < INT32_MAX ? most : INT32_MAX;
    if (options->parallel_for == NULL) {
        int usable = is_small ? 1 : usable_threads();
        workers = usable < workers ? usable : workers;
    }
    if (options->max_threads > 0 && options->max_threads < workers)
        workers = options->max_threads;
    return (int)workers;
}

rapt_status rapt_schedule_work(const rapt_run_options *options, int workers, int64_t tasks, rapt_work body,
                               void *argument) {
    int64_t count = tasks < workers ? tasks : workers;
    if (options->parallel_for) {
        if (options->parallel_for(options->parallel_for_context, count, body, argument) != 0)
            return RAPT_PARALLEL_FOR_FAILED;
    } else if (count > 1) {
        run_openmp(body, argument, workers); /* libgomp would end the threads that a smaller team leaves over */
    } else {
        body(argument, 0);
    }
    return RAPT_OK;
}

rapt_status rapt_schedule_run(const struct rapt_attention *a, void *memory, const rapt_run_options *options) {
    struct workspace *w = workspace_at(memory);
    int workers = a->tasks > 0 ? rapt_schedule_workers(options, w->slots, a->is_small) : 0;
    for (int32_t phase = 0; workers > 0 && phase < rapt_phases(a); phase++) {
        struct worker worker = {a, w, phase};
        rapt_status status = rapt_schedule_work(options, workers, rapt_tasks(a, phase), work, &worker);
        if (status != RAPT_OK)
            return status;
        if (atomic_load_explicit(&w->next[phase], memory_order_relaxed) < rapt_tasks(a, phase))
            return RAPT_PARALLEL_FOR_FAILED; /* it returned before it ran */
    }
    return RAPT_OK;
}
