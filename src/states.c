/* SPDX-License-Identifier: MIT
 * Callers' partial states: validate, dispatch, merge rows. A task is a group of rows whose states fit L1. */
#include "rapt/states.h"

#include "describe.h"
#include "dispatch.h"
#include "fpenv.h"
#include "numerics.h"
#include "refuse.h"
#include "schedule.h"
#include "state.h"
#include "validate/states.h"

enum {
    GROUP_FLOATS = 4096,   /* of o, in each of two states; the largest row takes 1024 */
    SMALL_MERGE = 1 << 16  /* floats below which waking a thread costs more */
};

struct merge {
    rapt_states_desc desc; /* complete; strides of single rows are 0 */
    rapt_tensor states[RAPT_MOST_STATES];
    const struct rapt_table *table;
    int64_t o_stride, rows, group_rows, groups; /* rows: of all sequences and heads */
};

/* The rows of a group: batch, head and token. */
struct group {
    int count;
    int64_t at[RAPT_MAX_TILE_ROWS][3];
};

struct scratch {
    _Alignas(RAPT_VECTOR_BYTES) float o[GROUP_FLOATS];
    float m[RAPT_MAX_TILE_ROWS], l[RAPT_MAX_TILE_ROWS];
};

/* A list may have changed since it was checked. */
static int64_t query_length_of(const rapt_states_desc *desc, int64_t b) {
    const int64_t most = desc->query_length;
    const int64_t length = desc->query_lengths.data ? rapt_index_at(desc->query_lengths, b) : most;
    return length < most ? length : most;
}

static void find_rows(const struct merge *merge, int64_t number, struct group *group) {
    const rapt_states_desc *desc = &merge->desc;
    const int64_t first = number * merge->group_rows;
    const int64_t end = merge->rows - first < merge->group_rows ? merge->rows : first + merge->group_rows;
    int64_t i = first % desc->query_length, h = first / desc->query_length % desc->query_heads;
    int64_t b = first / desc->query_length / desc->query_heads, length = query_length_of(desc, b);
    group->count = 0;
    for (int64_t row = first; row < end; row++) {
        if (i < length) {
            int64_t *at = group->at[group->count++];
            at[0] = b, at[1] = h, at[2] = i;
        }
        if (++i < desc->query_length)
            continue;
        i = 0;
        if (++h == desc->query_heads && row + 1 < end)
            h = 0, length = query_length_of(desc, ++b);
    }
}

static void rows_of(const struct group *group, const rapt_tensor *tensor, char **rows) {
    for (int row = 0; row < group->count; row++)
        rows[row] = (char *)(uintptr_t)rapt_row(tensor, group->at[row][0], group->at[row][1], group->at[row][2]);
}

static void finish(const struct merge *merge, const struct group *group, struct rapt_state state) {
    const rapt_states_desc *desc = &merge->desc;
    char *out[RAPT_MAX_TILE_ROWS], *lse[RAPT_MAX_TILE_ROWS];
    float sinks[RAPT_MAX_TILE_ROWS];
    float final_m[RAPT_MAX_TILE_ROWS], inverse[RAPT_MAX_TILE_ROWS];
    if (desc->out.data)
        rows_of(group, &desc->out, out);
    if (desc->lse.data)
        rows_of(group, &desc->lse, lse);
    for (int row = 0; desc->sinks && row < group->count; row++)
        sinks[row] = desc->sinks[group->at[row][1]] * RAPT_LOG2E;
    const struct rapt_finish_args args = {.state = state,
                                          .rows = group->count,
                                          .value_dim = (int)desc->value_dim,
                                          .sink_log2e = desc->sinks ? sinks : NULL,
                                          .out_format = rapt_format_of(desc->out.dtype),
                                          .out = desc->out.data ? out : NULL,
                                          .lse = desc->lse.data ? lse : NULL,
                                          .final_m = final_m,
                                          .inverse = inverse};
    merge->table->finish(&args);
}

/* All states of a row are read before anything of it is written. */
static void merge_group(const void *argument, int64_t number) {
    const struct merge *merge = argument;
    const rapt_states_desc *desc = &merge->desc;
    const struct rapt_table *table = merge->table;
    const int value_dim = (int)desc->value_dim;
    struct scratch first, other;
    const struct rapt_state into = {first.m, first.l, first.o, merge->o_stride};
    const struct rapt_state next = {other.m, other.l, other.o, merge->o_stride};
    struct group group;
    char *rows[RAPT_MAX_TILE_ROWS];
    find_rows(merge, number, &group);
    for (int64_t i = 0; i < desc->count; i++) {
        rows_of(&group, &merge->states[i], rows);
        table->load_states(i ? next : into, rows, group.count, value_dim);
        if (i)
            table->merge(into, next, group.count, value_dim);
    }
    if (desc->merged.data) {
        rows_of(&group, &desc->merged, rows);
        table->store_states(into, rows, group.count, value_dim);
    }
    if (desc->out.data || desc->lse.data)
        finish(merge, &group, into);
}

static void cut(struct merge *merge) {
    const rapt_states_desc *desc = &merge->desc;
    merge->o_stride = rapt_round_up(desc->value_dim, RAPT_VECTOR_BYTES / (int64_t)sizeof(float));
    merge->group_rows = GROUP_FLOATS / merge->o_stride;
    if (merge->group_rows > RAPT_MAX_TILE_ROWS)
        merge->group_rows = RAPT_MAX_TILE_ROWS;
    merge->rows = desc->batch * desc->query_heads * desc->query_length;
    merge->groups = rapt_quotient_up(merge->rows, merge->group_rows);
}

static rapt_status run(const struct merge *merge, const rapt_run_options *options) {
    const bool is_small = merge->rows < SMALL_MERGE / (merge->o_stride * merge->desc.count);
    return rapt_schedule_tasks(options, merge->groups, is_small, merge_group, merge);
}

/* States of order 3 are those of order 1; order 2 has functions of its own, the same for all its types. */
static void take_order(struct merge *merge) {
    if (merge->desc.numerics == RAPT_NUMERICS_ORDER_2)
        merge->table = merge->table->of_unit[RAPT_OF_BF16];
}

/* Compares sinks, so not in the caller's floating-point environment. */
static __attribute__((noinline)) rapt_status prepare(struct merge *merge, const rapt_states_desc *desc,
                                                     rapt_message *message) {
    rapt_status status = rapt_describe_states(desc, &merge->desc, merge->states, message);
    if (status == RAPT_OK)
        status = rapt_validate_states(&merge->desc, message);
    if (status == RAPT_OK)
        status = rapt_dispatch((rapt_isa)merge->desc.isa, &merge->table, message);
    if (status == RAPT_OK)
        take_order(merge);
    return status;
}

rapt_status rapt_merge_states(const rapt_states_desc *desc, const rapt_run_options *options, rapt_message *message) {
    rapt_run_options complete;
    struct merge merge;
    rapt_clear_message(message);
    const rapt_fpenv environment = rapt_fpenv_enter();
    rapt_status status = prepare(&merge, desc, message);
    rapt_fpenv_leave(environment);
    if (status == RAPT_OK)
        status = rapt_describe_options(options, &complete, message);
    if (status != RAPT_OK || merge.desc.batch == 0 || merge.desc.query_length == 0)
        return status;
    cut(&merge);
    status = run(&merge, &complete);
    return rapt_refuse_run(message, status);
}
