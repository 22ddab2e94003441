/* SPDX-License-Identifier: MIT
 * describe -> validate -> dispatch -> plan -> bind -> run, and nothing else. */
#include <stdlib.h>

#include "attend/task_info.h"
#include "describe.h"
#include "dispatch.h"
#include "format.h"
#include "fpenv.h"
#include "plan/bind.h"
#include "plan/plan.h"
#include "plan/workspace.h"
#include "refuse.h"
#include "schedule.h"
#include "validate/validate.h"

/* "rapt", the version that made the plan, the bytes of a plan. */
static const uint64_t PLAN_MAGIC = (uint64_t)0x72617074 << 32 |
                                   (uint64_t)(RAPT_VERSION_MAJOR << 7 | RAPT_VERSION_MINOR) << 16 | sizeof(rapt_plan);

/* Its address identifies the plans of this copy of the library in this process. */
static const char this_copy;

const char *rapt_version(void) { return RAPT_VERSION_STRING; }
int rapt_numerics_version(void) { return RAPT_NUMERICS_VERSION; }
int rapt_openmp_threads(void) { return rapt_schedule_threads(); }

const char *rapt_status_text(rapt_status status) {
    switch (status) {
    case RAPT_OK: return "ok";
    case RAPT_NULL_POINTER: return "required data is NULL";
    case RAPT_UNSUPPORTED_VERSION: return "unknown struct size or version";
    case RAPT_UNSUPPORTED_FLAG: return "unknown feature bit or enum value";
    case RAPT_UNSUPPORTED_DTYPE: return "unsupported dtype";
    case RAPT_INVALID_SHAPE: return "invalid shape";
    case RAPT_INVALID_STRIDE: return "invalid stride";
    case RAPT_INVALID_VALUE: return "value outside its range";
    case RAPT_MISALIGNED_POINTER: return "misaligned pointer";
    case RAPT_OUT_OF_EXTENT: return "a tensor or list reaches beyond its extent";
    case RAPT_OVERLAPPING_OUTPUT: return "output overlaps";
    case RAPT_UNSTATED_POSITION: return "the position of the queries is not stated";
    case RAPT_UNUSED_FIELD: return "a field is set that nothing uses";
    case RAPT_UNSUPPORTED_ISA: return "instruction set not available";
    case RAPT_INVALID_ENVIRONMENT: return "RAPT_ISA names no instruction set";
    case RAPT_SIZE_OVERFLOW: return "a size overflows";
    case RAPT_WORKSPACE_TOO_SMALL: return "workspace too small";
    case RAPT_BUSY: return "no free scratch slot in the workspace";
    case RAPT_OUT_OF_MEMORY: return "out of memory";
    case RAPT_PARALLEL_FOR_FAILED: return "the caller's parallel-for failed";
    case RAPT_INVALID_PLAN: return "not a plan of this library";
    case RAPT_NOT_PREPARED: return "the workspace is not prepared for this plan";
    case RAPT_NOT_BOUND: return "the plan is not bound to data";
    case RAPT_STOPPED: return "stopped by should_stop";
    }
    return "unknown status";
}

int64_t rapt_row_bytes(int32_t dtype, int64_t dim) {
    const int format = rapt_format_of(dtype);
    if (format == RAPT_FORMAT_COUNT || dim < 0 || dim >= INT64_MAX / 16)
        return 0;
    return dim % rapt_format_info(format)->elements == 0 ? rapt_format_row_bytes(format, dim) : 0;
}

/* ------------------------------------------------------------------ plans */

static rapt_status plan_desc(struct rapt_plan_body *body, const rapt_attention_desc *desc, rapt_message *message) {
    const struct rapt_table *table = NULL;
    rapt_status status = rapt_describe(desc, &body->desc, message);
    if (status == RAPT_OK)
        status = rapt_validate(&body->desc, message);
    if (status == RAPT_OK)
        status = rapt_dispatch((rapt_isa)body->desc.isa, &table, message);
    if (status == RAPT_OK && !rapt_plan_make(body, table))
        status = rapt_refuse(message, RAPT_INVALID_VALUE, "a list changed while the call was planned");
    return status;
}

rapt_status rapt_plan_init(rapt_plan *plan, const rapt_attention_desc *desc, rapt_message *message) {
    rapt_clear_message(message);
    if (!plan)
        return rapt_refuse(message, RAPT_NULL_POINTER, "plan = NULL");
    struct rapt_plan_body *body = (struct rapt_plan_body *)(void *)plan;
    body->magic = 0;
    rapt_fpenv environment = rapt_fpenv_enter();
    rapt_status status = plan_desc(body, desc, message);
    rapt_fpenv_leave(environment);
    if (status == RAPT_OK) {
        body->magic = PLAN_MAGIC;
        body->library = &this_copy;
    }
    return status;
}

static const struct rapt_plan_body *checked(const rapt_plan *plan) {
    const struct rapt_plan_body *body = rapt_body_of(plan);
    return plan && body->magic == PLAN_MAGIC && body->library == &this_copy ? body : NULL;
}

rapt_status rapt_plan_bind(rapt_plan *plan, const rapt_bindings *bindings, rapt_message *message) {
    rapt_clear_message(message);
    if (!checked(plan))
        return rapt_refuse(message, RAPT_INVALID_PLAN, "plan was not made by this library");
    rapt_fpenv environment = rapt_fpenv_enter();
    rapt_status status = rapt_bind((struct rapt_plan_body *)(void *)plan, bindings, message);
    rapt_fpenv_leave(environment);
    return status;
}

rapt_isa rapt_plan_isa(const rapt_plan *plan) {
    const struct rapt_plan_body *body = checked(plan);
    return body ? body->table->isa : RAPT_ISA_AUTO;
}

rapt_numerics rapt_plan_numerics(const rapt_plan *plan) {
    const struct rapt_plan_body *body = checked(plan);
    return body ? (rapt_numerics)body->numerics : RAPT_NUMERICS_DEFAULT;
}

/* -------------------------------------------------------------- workspace */

rapt_status rapt_plan_workspace_bytes(const rapt_plan *plan, int64_t max_concurrency, size_t *bytes) {
    const struct rapt_plan_body *body = checked(plan);
    if (!body)
        return RAPT_INVALID_PLAN;
    if (!bytes)
        return RAPT_NULL_POINTER;
    if (max_concurrency < 1)
        return RAPT_INVALID_VALUE;
    return rapt_workspace_bytes(body, max_concurrency, bytes);
}

rapt_status rapt_workspace_bound(const rapt_attention_desc *largest, int64_t max_concurrency, size_t *bytes,
                                 rapt_message *message) {
    rapt_plan plan;
    rapt_status status = rapt_plan_init(&plan, largest, message);
    if (status != RAPT_OK)
        return status;
    if (!bytes)
        return rapt_refuse(message, RAPT_NULL_POINTER, "bytes is NULL");
    if (max_concurrency < 1)
        return rapt_refuse(message, RAPT_INVALID_VALUE, "max_concurrency = %lld is below 1",
                           (long long)max_concurrency);
    status = rapt_workspace_capacity(rapt_body_of(&plan), max_concurrency, bytes);
    return status == RAPT_OK ? status
                             : rapt_refuse(message, status, "max_concurrency = %lld is above %d",
                                           (long long)max_concurrency, INT32_MAX);
}

int64_t rapt_run_concurrency(const rapt_plan *plan, const rapt_run_options *options) {
    const struct rapt_plan_body *body = checked(plan);
    rapt_run_options complete;
    if (!body || rapt_describe_options(options, &complete, NULL) != RAPT_OK)
        return 0;
    return rapt_schedule_concurrency(body, &complete);
}

/* -------------------------------------------------------------------- run */

static rapt_status check_run(const rapt_plan *plan, const void *workspace) {
    const struct rapt_plan_body *body = checked(plan);
    if (!body)
        return RAPT_INVALID_PLAN;
    if (!workspace)
        return RAPT_NULL_POINTER;
    return rapt_is_bound(&body->desc) ? RAPT_OK : RAPT_NOT_BOUND;
}

rapt_status rapt_prepare(const rapt_plan *plan, void *workspace, size_t workspace_bytes) {
    const struct rapt_plan_body *body = checked(plan);
    if (!body)
        return RAPT_INVALID_PLAN;
    if (!workspace)
        return RAPT_NULL_POINTER;
    return rapt_workspace_prepare(body, workspace, workspace_bytes);
}

int32_t rapt_phase_count(const rapt_plan *plan) {
    const struct rapt_plan_body *body = checked(plan);
    return body ? rapt_phases(body) : 0;
}

int64_t rapt_task_count(const rapt_plan *plan, int32_t phase) {
    const struct rapt_plan_body *body = checked(plan);
    return body && phase >= 0 && phase < rapt_phases(body) ? rapt_tasks(body, phase) : 0;
}

rapt_status rapt_run_task(const rapt_plan *plan, void *workspace, int32_t phase, int64_t task) {
    const rapt_status status = check_run(plan, workspace);
    if (status != RAPT_OK)
        return status;
    if (task < 0 || task >= rapt_task_count(plan, phase))
        return RAPT_INVALID_VALUE;
    return rapt_schedule_task(rapt_body_of(plan), workspace, phase, task);
}

rapt_status rapt_join(const rapt_plan *plan, void *workspace, int32_t phase) {
    const rapt_status status = check_run(plan, workspace);
    if (status != RAPT_OK)
        return status;
    if (phase < 0 || phase >= rapt_phase_count(plan))
        return RAPT_INVALID_VALUE;
    return rapt_schedule_join(rapt_body_of(plan), workspace, phase);
}

rapt_status rapt_task_info_of(const rapt_plan *plan, const void *workspace, int32_t phase, int64_t task,
                              rapt_task_info *info) {
    const struct rapt_plan_body *body = checked(plan);
    if (!body)
        return RAPT_INVALID_PLAN;
    if (!workspace || !info)
        return RAPT_NULL_POINTER;
    if (task < 0 || task >= rapt_task_count(plan, phase))
        return RAPT_INVALID_VALUE;
    const struct rapt_workspace *prepared = rapt_workspace_of(body, (void *)(uintptr_t)workspace);
    if (!prepared)
        return RAPT_NOT_PREPARED;
    const struct rapt_run run = rapt_run_of(body, prepared);
    const rapt_fpenv environment = rapt_fpenv_enter();
    rapt_task_describe(&run, phase, task, info);
    rapt_fpenv_leave(environment);
    return RAPT_OK;
}

static rapt_status run(const rapt_plan *plan, void *workspace, size_t bytes, const rapt_run_options *complete) {
    rapt_status status = check_run(plan, workspace);
    if (status == RAPT_OK)
        status = rapt_workspace_prepare(rapt_body_of(plan), workspace, bytes);
    return status == RAPT_OK ? rapt_schedule_run(rapt_body_of(plan), workspace, complete) : status;
}

rapt_status rapt_run(const rapt_plan *plan, void *workspace, size_t workspace_bytes, const rapt_run_options *options) {
    rapt_run_options complete;
    const rapt_status status = rapt_describe_options(options, &complete, NULL);
    return status == RAPT_OK ? run(plan, workspace, workspace_bytes, &complete) : status;
}

static rapt_status run_in_heap(const rapt_plan *plan, const rapt_run_options *complete, rapt_message *message) {
    size_t bytes = 0;
    const int64_t slots = rapt_schedule_concurrency(rapt_body_of(plan), complete);
    rapt_status status = rapt_plan_workspace_bytes(plan, slots, &bytes);
    if (status != RAPT_OK)
        return rapt_refuse(message, status, "the workspace has no room for %lld tasks at once",
                           (long long)slots);
    void *workspace = malloc(bytes);
    if (!workspace)
        return rapt_refuse(message, RAPT_OUT_OF_MEMORY, "out of memory: %zu bytes of workspace", bytes);
    status = run(plan, workspace, bytes, complete);
    free(workspace);
    return rapt_refuse_run(message, status);
}

rapt_status rapt_attention(const rapt_attention_desc *desc, const rapt_run_options *options, rapt_message *message) {
    rapt_run_options complete;
    rapt_plan plan;
    rapt_status status = rapt_plan_init(&plan, desc, message);
    if (status == RAPT_OK)
        status = rapt_describe_options(options, &complete, message);
    if (status == RAPT_OK && !rapt_is_bound(&rapt_body_of(&plan)->desc))
        status = rapt_refuse(message, RAPT_NULL_POINTER, "query.data is NULL, and so are all others");
    return status == RAPT_OK ? run_in_heap(&plan, &complete, message) : status;
}
