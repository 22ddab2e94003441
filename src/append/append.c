/* SPDX-License-Identifier: MIT
 * Append and rotate: describe, validate, dispatch, cut into tasks, run. */
#include "append/append.h"

#include "append/lists.h"
#include "describe.h"
#include "dispatch.h"
#include "fpenv.h"
#include "plan/plan.h"
#include "refuse.h"
#include "schedule.h"
#include "validate/append.h"

enum {
    MOST_TASKS = 63,          /* each looks at all tokens */
    SMALL_APPEND = 256 * 1024 /* bytes, below which waking a thread costs more */
};

static void open_side(struct rapt_append *a, int i, const rapt_tensor *from, const rapt_tensor *into, int64_t dim) {
    const bool paged = rapt_cache_shape_of(&a->desc).paged;
    const uint32_t computes = i == RAPT_KEYS ? RAPT_COMPUTE_KEY_SCALES : RAPT_COMPUTE_VALUE_SCALES;
    a->side[i] = (struct rapt_append_side){0};
    if (!into->data)
        return;
    a->side[i] =
        (struct rapt_append_side){.from = from,
                                  .into = into,
                                  .dim = (int)dim,
                                  .from_format = rapt_format_of(from->dtype),
                                  .into_format = rapt_format_of(into->dtype),
                                  .page_stride_bytes = paged ? into->page_stride_bytes : into->batch_stride_bytes,
                                  .rotates = i == RAPT_KEYS && a->desc.rotary.pairing != RAPT_ROTARY_NONE,
                                  .computes = a->desc.features & computes};
}

static int64_t bytes_of(const struct rapt_append *a) {
    const rapt_append_desc *d = &a->desc;
    int64_t bytes = 0;
    for (int i = 0; i < RAPT_SIDES; i++)
        if (a->side[i].from)
            bytes += rapt_format_row_bytes(a->side[i].from_format, a->side[i].dim) +
                     rapt_format_row_bytes(a->side[i].into_format, a->side[i].dim);
    return bytes * d->kv_heads * rapt_append_count(d);
}

/* An odd number of tasks: strides between places are often powers of two. The cut changes no bit. */
static void cut(struct rapt_append *a, const rapt_run_options *options) {
    const rapt_append_desc *d = &a->desc;
    open_side(a, RAPT_KEYS, &d->key, &d->key_cache, d->head_dim);
    open_side(a, RAPT_VALUES, &d->value, &d->value_cache, d->value_dim);
    a->pages = rapt_cache_shape_of(d).pages;
    a->page_tokens = rapt_cache_shape_of(d).page_tokens;
    const bool is_small = bytes_of(a) < SMALL_APPEND;
    const int workers = rapt_schedule_workers(options, MOST_TASKS, is_small);
    a->tasks = is_small || workers < 2 ? 1 : 4 * workers < MOST_TASKS ? 4 * workers + 1 : MOST_TASKS;
}

static void run_task(const void *argument, int64_t task) { rapt_append_tokens(argument, task, rapt_append_rows); }

static __attribute__((noinline)) rapt_status prepare(struct rapt_append *a, enum rapt_append_kind kind,
                                                     const void *desc, rapt_message *message) {
    rapt_status status = kind == RAPT_KIND_ROTATE ? rapt_describe_rotate(desc, &a->desc, message)
                                                  : rapt_describe_append(desc, &a->desc, message);
    if (status == RAPT_OK)
        status = rapt_validate_append(&a->desc, kind, message);
    if (status == RAPT_OK)
        status = rapt_dispatch((rapt_isa)a->desc.isa, &a->table, message);
    if (status == RAPT_OK && a->desc.rotary.pairing != RAPT_ROTARY_NONE && !a->desc.rotary.cosines)
        rapt_rotary_angles(&a->desc.rotary, &a->angles);
    return status;
}

static rapt_status append(enum rapt_append_kind kind, const void *desc, const rapt_run_options *options,
                          rapt_message *message) {
    struct rapt_append a;
    rapt_run_options complete;
    rapt_clear_message(message);
    const rapt_fpenv environment = rapt_fpenv_enter();
    rapt_status status = prepare(&a, kind, desc, message);
    rapt_fpenv_leave(environment);
    if (status == RAPT_OK)
        status = rapt_describe_options(options, &complete, message);
    if (status != RAPT_OK || rapt_append_count(&a.desc) == 0)
        return status;
    cut(&a, &complete);
    status = rapt_schedule_tasks(&complete, a.tasks, a.tasks == 1, run_task, &a);
    return rapt_refuse_run(message, status);
}

rapt_status rapt_append(const rapt_append_desc *desc, const rapt_run_options *options, rapt_message *message) {
    return append(RAPT_KIND_APPEND, desc, options, message);
}

rapt_status rapt_rotate(const rapt_rotate_desc *desc, const rapt_run_options *options, rapt_message *message) {
    return append(RAPT_KIND_ROTATE, desc, options, message);
}
