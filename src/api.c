/* SPDX-License-Identifier: MIT
 * validate -> dispatch -> plan -> run, and nothing else. */
#include <stdlib.h>

#include "fpenv.h"
#include "internal.h"
#include "plan.h"
#include "schedule.h"
#include "workspace.h"

static const uint64_t PLAN_MAGIC = 0x726170742d706c61; /* "rapt-pla" */

const char *rapt_version(void) { return RAPT_VERSION_STRING; }
int rapt_numerics_version(void) { return RAPT_NUMERICS_VERSION; }
int rapt_openmp_threads(void) { return rapt_schedule_threads(); }

const char *rapt_status_text(rapt_status status) {
    switch (status) {
    case RAPT_OK: return "ok";
    case RAPT_NULL_POINTER: return "data that the call needs is NULL";
    case RAPT_UNSUPPORTED_VERSION: return "unknown struct size or version";
    case RAPT_UNSUPPORTED_FLAG: return "unknown feature bit or enum value";
    case RAPT_UNSUPPORTED_DTYPE: return "unsupported dtype";
    case RAPT_INVALID_SHAPE: return "invalid shape";
    case RAPT_INVALID_STRIDE: return "invalid stride";
    case RAPT_INVALID_VALUE: return "value outside its range";
    case RAPT_MISALIGNED_POINTER: return "misaligned pointer";
    case RAPT_OUT_OF_EXTENT: return "tensor reaches beyond its extent";
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
    }
    return "unknown status";
}

rapt_status rapt_plan_init(rapt_plan *plan, const rapt_attention_desc *desc, rapt_message *message) {
    if (message)
        message->text[0] = 0;
    if (!plan)
        return rapt_refuse(message, RAPT_NULL_POINTER, "plan = NULL");
    plan->opaque[0] = 0;
    rapt_fpenv environment = rapt_fpenv_enter();
    const struct rapt_table *table = NULL;
    rapt_status status = rapt_validate(desc, message);
    if (status == RAPT_OK)
        status = rapt_dispatch((rapt_isa)desc->isa, &table, message);
    if (status == RAPT_OK) {
        struct rapt_attention *attention = (struct rapt_attention *)(void *)plan;
        if (rapt_cut(attention, desc, table))
            attention->magic = PLAN_MAGIC;
        else
            status = rapt_refuse(message, RAPT_SIZE_OVERFLOW, "the tasks of this shape overflow int64");
    }
    rapt_fpenv_leave(environment);
    return status;
}

static const struct rapt_attention *checked(const rapt_plan *plan) {
    const struct rapt_attention *attention = rapt_attention_of(plan);
    return plan && attention->magic == PLAN_MAGIC ? attention : NULL;
}

rapt_isa rapt_plan_isa(const rapt_plan *plan) {
    const struct rapt_attention *attention = checked(plan);
    return attention ? attention->table->isa : RAPT_ISA_AUTO;
}

rapt_status rapt_plan_workspace_bytes(const rapt_plan *plan, int64_t max_concurrency, size_t *bytes) {
    const struct rapt_attention *attention = checked(plan);
    if (!attention)
        return RAPT_UNSUPPORTED_VERSION;
    if (!bytes)
        return RAPT_NULL_POINTER;
    if (max_concurrency < 1)
        return RAPT_INVALID_VALUE;
    return rapt_workspace_bytes(attention, max_concurrency, bytes);
}

rapt_status rapt_prepare(const rapt_plan *plan, void *workspace, size_t workspace_bytes) {
    const struct rapt_attention *attention = checked(plan);
    if (!attention)
        return RAPT_UNSUPPORTED_VERSION;
    if (!workspace)
        return RAPT_NULL_POINTER;
    return rapt_workspace_prepare(attention, workspace, workspace_bytes);
}

int32_t rapt_phase_count(const rapt_plan *plan) {
    const struct rapt_attention *attention = checked(plan);
    return attention ? rapt_phases(attention) : 0;
}

int64_t rapt_task_count(const rapt_plan *plan, int32_t phase) {
    const struct rapt_attention *attention = checked(plan);
    return attention && phase >= 0 && phase < rapt_phases(attention) ? rapt_tasks(attention, phase) : 0;
}

rapt_status rapt_run_task(const rapt_plan *plan, void *workspace, int32_t phase, int64_t task) {
    const struct rapt_attention *attention = checked(plan);
    if (!attention)
        return RAPT_UNSUPPORTED_VERSION;
    if (!workspace)
        return RAPT_NULL_POINTER;
    if (task < 0 || task >= rapt_task_count(plan, phase))
        return RAPT_INVALID_VALUE;
    return rapt_schedule_task(attention, workspace, phase, task);
}

rapt_status rapt_run(const rapt_plan *plan, void *workspace, size_t workspace_bytes, const rapt_run_options *options) {
    static const rapt_run_options defaults = {sizeof(rapt_run_options), 0, NULL, NULL};
    if (!options)
        options = &defaults;
    if (options->struct_size != sizeof(rapt_run_options))
        return RAPT_UNSUPPORTED_VERSION;
    if (options->max_threads < 0)
        return RAPT_INVALID_VALUE;
    rapt_status status = rapt_prepare(plan, workspace, workspace_bytes);
    return status == RAPT_OK ? rapt_schedule_run(rapt_attention_of(plan), workspace, options) : status;
}

rapt_status rapt_attention(const rapt_attention_desc *desc, rapt_message *message) {
    rapt_plan plan;
    size_t bytes = 0;
    rapt_status status = rapt_plan_init(&plan, desc, message);
    if (status != RAPT_OK)
        return status;
    const struct rapt_attention *attention = rapt_attention_of(&plan);
    int64_t threads = attention->is_small ? 1 : rapt_schedule_threads();
    if (threads > attention->totals.all_tasks)
        threads = attention->totals.all_tasks;
    status = rapt_plan_workspace_bytes(&plan, threads > 0 ? threads : 1, &bytes);
    if (status != RAPT_OK)
        return rapt_refuse(message, status, "the workspace of this shape overflows size_t");
    void *workspace = malloc(bytes);
    if (!workspace)
        return rapt_refuse(message, RAPT_OUT_OF_MEMORY, "out of memory: %zu bytes of workspace", bytes);
    status = rapt_run(&plan, workspace, bytes, NULL);
    free(workspace);
    return status;
}
