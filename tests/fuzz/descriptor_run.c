/* SPDX-License-Identifier: MIT */
#include "descriptor_run.h"

#include <stdlib.h>
#include <string.h>

#include "support/pool.h"
#include "reference/reference.h"
#include "support/support.h"

static const double most_work = 2e5, most_rows = 2e4;
enum { MOST_WORKSPACE = 1 << 26 };

bool is_small(const rapt_attention_desc *d) {
    const double rows = (double)d->batch * (double)d->query_heads * ((double)d->query_length + 1);
    return rows <= most_rows && d->kv_length <= (int64_t)most_work &&
           rows * (double)d->kv_length * (double)(d->head_dim + d->value_dim + 8) <= most_work;
}

/* ---- memory */

struct snapshot snapshot_of(const struct fuzzed_call *call) {
    struct snapshot snapshot = {{NULL}};
    for (int i = 0; i < call->region_count; i++) {
        snapshot.bytes[i] = malloc(call->regions[i].bytes + 1);
        if (!snapshot.bytes[i])
            fuzz_fail("out of memory");
        memcpy(snapshot.bytes[i], call->regions[i].data, call->regions[i].bytes);
    }
    return snapshot;
}

void restore(const struct fuzzed_call *call, const struct snapshot *snapshot) {
    for (int i = 0; i < call->region_count; i++)
        memcpy(call->regions[i].data, snapshot->bytes[i], call->regions[i].bytes);
}

void expect_memory(const struct fuzzed_call *call, const struct snapshot *expected, const char *what) {
    for (int i = 0; i < call->region_count; i++) {
        const struct region *region = &call->regions[i];
        size_t at = 0;
        if (memcmp(region->data, expected->bytes[i], region->bytes) == 0)
            continue;
        while (region->data[at] == expected->bytes[i][at])
            at++;
        fuzz_fail("%s: byte %zu of region %d, which has %zu, is another", what, at, i, region->bytes);
    }
}

void expect_text(rapt_status status, const rapt_message *message) {
    const char *end = memchr(message->text, 0, sizeof message->text);
    if (!end || (end == message->text) != (status == RAPT_OK))
        fuzz_fail("status %d with the text \"%.255s\"", (int)status, message->text);
}

void snapshot_free(struct snapshot *snapshot) {
    for (int i = 0; i < MOST_REGIONS; i++)
        free(snapshot->bytes[i]);
}

/* ---- ways to run a plan; the workspace has exactly the required size, at any address */

static rapt_status run_tasks(const rapt_plan *plan, void *workspace, size_t bytes) {
    rapt_status status = rapt_prepare(plan, workspace, bytes);
    for (int32_t phase = 0; status == RAPT_OK && phase < rapt_phase_count(plan); phase++)
        for (int64_t task = rapt_task_count(plan, phase) - 1; status == RAPT_OK && task >= 0; task--)
            status = rapt_run_task(plan, workspace, phase, task);
    return status;
}

struct joined {
    const rapt_plan *plan;
    void *workspace;
    int32_t phase;
    _Atomic int refused;
};

static void join(void *argument, int number) {
    struct joined *joined = argument;
    joined->refused += rapt_join(joined->plan, joined->workspace, joined->phase) != RAPT_OK;
    (void)number;
}

/* More threads than slots: some find none and leave. */
static rapt_status join_phases(const rapt_plan *plan, void *workspace, size_t bytes, int threads) {
    struct joined joined = {.plan = plan, .workspace = workspace};
    const rapt_status status = rapt_prepare(plan, workspace, bytes);
    for (; status == RAPT_OK && joined.phase < rapt_phase_count(plan); joined.phase++)
        pool_run(threads, join, &joined);
    if (joined.refused)
        fuzz_fail("%d of %d threads may not join", joined.refused, threads);
    return status;
}

rapt_status run_plan(const rapt_plan *plan, uint8_t way) {
    const rapt_plan moved = *plan;
    const size_t odd = way / 4 % 8;
    size_t bytes = 0;
    rapt_status status = rapt_plan_workspace_bytes(&moved, 1 + way / 32 % 3, &bytes);
    if (status != RAPT_OK || bytes > MOST_WORKSPACE)
        return status;
    struct region workspace = region_new(bytes + odd);
    memset(workspace.data, 0xff, workspace.bytes);
    status = way & 128 ? join_phases(&moved, workspace.data + odd, bytes, 2 + way / 32 % 4)
             : way & 1 ? rapt_run(&moved, workspace.data + odd, bytes, NULL)
                       : run_tasks(&moved, workspace.data + odd, bytes);
    region_free(&workspace);
    return status;
}

void expect_result(const struct fuzzed_call *call, fuzzed_reference *reference, const void *desc,
                   const struct snapshot *before) {
    struct snapshot result = snapshot_of(call);
    restore(call, before);
    reference(desc);
    expect_memory(call, &result, "after a run");
    snapshot_free(&result);
}

void attend(const void *desc) {
    rapt_attention_desc resolved = *(const rapt_attention_desc *)desc;
    rapt_plan plan;
    resolved.struct_size = sizeof resolved; /* a later release's says that more follows */
    if (resolved.numerics == RAPT_NUMERICS_FASTEST && rapt_plan_init(&plan, &resolved, NULL) == RAPT_OK)
        resolved.numerics = rapt_plan_numerics(&plan);
    rapt_reference_attention(&resolved);
}

void expect_reference(const struct fuzzed_call *call, const rapt_attention_desc *desc, const struct snapshot *before) {
    expect_result(call, attend, desc, before);
}
