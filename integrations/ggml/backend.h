/* SPDX-License-Identifier: MIT
 * The backend: made by a device, one per context of a host. */
#ifndef RAPT_GGML_BACKEND_H
#define RAPT_GGML_BACKEND_H

#include <stdatomic.h>

#include "ggml-backend.h"

/* For all backends since the library was loaded. */
struct rapt_ggml_counters {
    _Atomic uint64_t calls, plans, declined, failed;
};
extern struct rapt_ggml_counters rapt_ggml_counters;

ggml_backend_t rapt_ggml_backend_new(ggml_backend_dev_t device);
bool rapt_ggml_is_backend(ggml_backend_t backend);

/* Hosts find these with ggml_backend_reg_get_proc_address. */
void rapt_ggml_set_n_threads(ggml_backend_t backend, int count);
void rapt_ggml_set_threadpool(ggml_backend_t backend, struct ggml_threadpool *pool);
void rapt_ggml_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void *data);

/* Views and other no-ops. */
bool rapt_ggml_is_nothing(enum ggml_op op);

#endif
