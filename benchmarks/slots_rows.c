/* SPDX-License-Identifier: MIT
 *
 * The slots of a table that do not involve tiles: states, rows of numbers, stored rows. */
#include "slots.h"

enum { ROWS = 48, DIM = 128, NUMBERS = 4096 };

struct rows {
    const struct rapt_table *table;
    struct rapt_state into, next;
    float *from, *to, *final_m, *inverse;
    char *out[ROWS], *lse[ROWS], *states[ROWS];
    int format;
    unsigned found;
};

static struct rapt_state new_state(void) {
    struct rapt_state state = {slots_zeros(ROWS), slots_zeros(ROWS), slots_numbers(ROWS * DIM), DIM};
    for (int row = 0; row < ROWS; row++)
        state.l[row] = 1;
    return state;
}

static void free_state(struct rapt_state *state) {
    buffer_free(state->m);
    buffer_free(state->l);
    buffer_free(state->o);
}

static struct rows rows_of(const struct slots *slots) {
    struct rows rows = {.table = slots->table, .into = new_state(), .next = new_state()};
    rows.from = slots_numbers(RAPT_BLOCK_KEYS * DIM);
    rows.to = slots_zeros(RAPT_BLOCK_KEYS * DIM);
    rows.final_m = slots_zeros(ROWS);
    rows.inverse = slots_zeros(ROWS);
    for (int row = 0; row < ROWS; row++) {
        rows.out[row] = (char *)(rows.to + row * DIM);
        rows.lse[row] = (char *)(rows.to + ROWS * DIM + row);
        rows.states[row] = (char *)(rows.to + row * (2 + DIM));
        rows.next.m[row] = row % 2 ? -2 : 0;
    }
    return rows;
}

static void free_rows(struct rows *rows) {
    free_state(&rows->into);
    free_state(&rows->next);
    buffer_free(rows->from);
    buffer_free(rows->to);
    buffer_free(rows->final_m);
    buffer_free(rows->inverse);
}

static void run_merge(void *context) {
    struct rows *rows = context;
    rows->table->merge(rows->into, rows->next, ROWS, DIM);
}

static void run_finish(void *context) {
    struct rows *rows = context;
    const struct rapt_finish_args args = {.state = rows->next,
                                          .rows = ROWS,
                                          .value_dim = DIM,
                                          .out_format = rows->format,
                                          .out = rows->out,
                                          .lse = rows->lse,
                                          .final_m = rows->final_m,
                                          .inverse = rows->inverse};
    rows->table->finish(&args);
}

static void run_load_states(void *context) {
    struct rows *rows = context;
    rows->table->load_states(rows->into, rows->states, ROWS, DIM);
}

static void run_store_states(void *context) {
    struct rows *rows = context;
    rows->table->store_states(rows->next, rows->states, ROWS, DIM);
}

static void run_exponentials(void *context) {
    struct rows *rows = context;
    rows->table->exponentials(rows->from, rows->to, NUMBERS, 2);
}

static void run_tanhs(void *context) {
    struct rows *rows = context;
    rows->table->tanhs(rows->from, rows->to, NUMBERS);
}

static void run_log2s(void *context) {
    struct rows *rows = context;
    rows->table->log2s(rows->from, rows->to, NUMBERS);
}

static void run_export_row(void *context) {
    struct rows *rows = context;
    rows->table->export_row(rows->from, rows->to, NUMBERS, 0.5f);
}

static void run_all_finite(void *context) {
    struct rows *rows = context;
    rows->found += rows->table->all_finite((const char *)rows->from, DIM * sizeof(float), ROWS, DIM);
}

static void run_stage(void *context) {
    struct rows *rows = context;
    const struct rapt_stage_args args = {.into = rows->to,
                                         .from = (const char *)rows->from,
                                         .from_stride_bytes = rapt_format_row_bytes(rows->format, DIM),
                                         .rows = RAPT_BLOCK_KEYS,
                                         .dim = DIM,
                                         .format = rows->format};
    rows->table->stage(&args);
}

static void measure_rows(struct slots *slots, const char *slot, void (*run)(void *), double numbers) {
    struct rows rows = rows_of(slots);
    const struct slot_case what = {run, &rows, numbers, 0};
    slots_measure(slots, &what, "%s", slot);
    free_rows(&rows);
}

void slots_merge(struct slots *slots) {
    measure_rows(slots, "merge rows 48 d128", run_merge, ROWS * DIM);
}

/* Every storage type that out may have. */
void slots_finish(struct slots *slots) {
    for (int format = 0; format < RAPT_FORMAT_COUNT; format++) {
        struct rows rows = rows_of(slots);
        const struct slot_case what = {run_finish, &rows, ROWS * DIM, 0};
        rows.format = format;
        if (rapt_format_info(format)->uses & RAPT_USE_ENDS)
            slots_measure(slots, &what, "finish %s rows 48 d128", rapt_format_info(format)->text);
        free_rows(&rows);
    }
}

void slots_states(struct slots *slots) {
    measure_rows(slots, "load_states rows 48 d128", run_load_states, ROWS * DIM);
    measure_rows(slots, "store_states rows 48 d128", run_store_states, ROWS * DIM);
}

void slots_exponentials(struct slots *slots) {
    measure_rows(slots, "exponentials", run_exponentials, NUMBERS);
}

void slots_elementary(struct slots *slots) {
    measure_rows(slots, "tanhs", run_tanhs, NUMBERS);
    measure_rows(slots, "log2s", run_log2s, NUMBERS);
}

void slots_export_row(struct slots *slots) {
    measure_rows(slots, "export_row", run_export_row, NUMBERS);
}

void slots_all_finite(struct slots *slots) {
    measure_rows(slots, "all_finite rows 48 d128", run_all_finite, ROWS * DIM);
}

/* Every storage type that has a slot. */
void slots_stage(struct slots *slots) {
    static const char *const names[] = {
#define RAPT_FORMAT(name, NAME, text, elements, bytes, alignment, uses) #name,
#include "format.def"
#undef RAPT_FORMAT
    };
    struct rows rows = rows_of(slots);
    for (rows.format = 0; rows.format < RAPT_FORMAT_COUNT; rows.format++) {
        const struct slot_case what = {run_stage, &rows, RAPT_BLOCK_KEYS * DIM, 0};
        if (rows.format != RAPT_FORMAT_BOOL8)
            slots_measure(slots, &what, "stage %s rows 256 d128", names[rows.format]);
    }
    free_rows(&rows);
}
