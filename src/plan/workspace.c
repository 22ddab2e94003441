/* SPDX-License-Identifier: MIT */
#include "plan/workspace.h"

#include "fpenv.h"

#include <string.h>

enum { WORKSPACE_MAGIC = 0x72617074 };

/* Offsets in bytes from the first multiple of 64 on. */
struct layout {
    size_t works, states, slots, end;
};

static struct rapt_workspace *workspace_at(void *memory) {
    const uintptr_t address = (uintptr_t)memory + (RAPT_VECTOR_BYTES - 1);
    return (struct rapt_workspace *)(address - address % RAPT_VECTOR_BYTES);
}

static size_t padded(size_t bytes) { return (size_t)rapt_round_up((int64_t)bytes, RAPT_VECTOR_BYTES); }

/* Nothing overflows with at most INT32_MAX slots, of some MiB each, and 2^40 sequences. */
static struct layout lay_out(size_t table_bytes, int64_t state_bytes, size_t slot_bytes, int64_t slots) {
    struct layout at;
    at.works = padded(sizeof(struct rapt_workspace) + (size_t)slots);
    at.states = at.works + padded(table_bytes);
    at.slots = at.states + padded((size_t)state_bytes);
    at.end = at.slots + padded((size_t)slots * slot_bytes) + RAPT_VECTOR_BYTES - 1;
    return at;
}

static struct layout layout_of(const struct rapt_plan_body *plan, int64_t slots) {
    return lay_out(rapt_work_table_bytes(plan), plan->totals.state_bytes, plan->slot.slot_bytes, slots);
}

static int64_t useful(const struct rapt_plan_body *plan, int64_t slots) {
    const int64_t tasks = plan->totals.all_tasks > 0 ? plan->totals.all_tasks : 1;
    return slots < tasks ? slots : tasks;
}

rapt_status rapt_workspace_bytes(const struct rapt_plan_body *plan, int64_t slots, size_t *bytes) {
    const int64_t count = useful(plan, slots);
    if (count > INT32_MAX)
        return RAPT_SIZE_OVERFLOW;
    *bytes = layout_of(plan, count).end;
    return RAPT_OK;
}

rapt_status rapt_workspace_capacity(const struct rapt_plan_body *largest, int64_t slots, size_t *bytes) {
    struct rapt_plan_body any = *largest, *plan = &any;
    struct rapt_totals totals;
    struct rapt_slot_layout slot, further;
    if (slots > INT32_MAX)
        return RAPT_SIZE_OVERFLOW;
    rapt_work_bound(plan, &totals);
    const size_t table_bytes = (size_t)plan->desc.batch * sizeof(struct rapt_work);
    plan->mask_parts |= RAPT_PART_SELECT; /* trees and lists of key blocks */
    rapt_lay_out_slot(plan, &totals, &slot, &further);
    *bytes = lay_out(table_bytes, totals.state_bytes, slot.slot_bytes, slots).end;
    return RAPT_OK;
}

/* The largest number of slots that fits; a slot takes slot_bytes and one byte of the header. */
static int64_t slots_in(const struct rapt_plan_body *plan, size_t bytes) {
    const size_t least = layout_of(plan, 1).end;
    if (least > bytes)
        return 0;
    const size_t most = 1 + (bytes - least) / plan->slot.slot_bytes;
    int64_t slots = useful(plan, most < INT32_MAX ? (int64_t)most : INT32_MAX);
    while (slots > 1 && layout_of(plan, slots).end > bytes)
        slots--;
    return slots;
}

rapt_status rapt_workspace_prepare(const struct rapt_plan_body *plan, void *memory, size_t bytes) {
    const int64_t slots = slots_in(plan, bytes);
    if (slots == 0)
        return RAPT_WORKSPACE_TOO_SMALL;
    const struct layout layout = layout_of(plan, slots);
    struct rapt_workspace *w = workspace_at(memory);
    struct rapt_work *works = (struct rapt_work *)(void *)((char *)w + layout.works);
    w->magic = 0;
    const rapt_fpenv environment = rapt_fpenv_enter();
    const bool fits = rapt_work_write(plan, works);
    rapt_fpenv_leave(environment);
    if (!fits)
        return RAPT_INVALID_VALUE;
    w->slots = slots;
    w->totals = plan->totals;
    w->slot_bytes = plan->slot.slot_bytes;
    w->works = works;
    w->states = (char *)w + layout.states;
    w->scratch = (char *)w + layout.slots;
    for (int phase = 0; phase < RAPT_PHASES; phase++)
        atomic_init(&w->next[phase], 0);
    atomic_init(&w->stopped, false);
    for (int64_t slot = 0; slot < slots; slot++)
        atomic_init(&w->busy[slot], 0);
    w->magic = WORKSPACE_MAGIC;
    return RAPT_OK;
}

struct rapt_workspace *rapt_workspace_of(const struct rapt_plan_body *plan, void *memory) {
    struct rapt_workspace *w = workspace_at(memory);
    return w->magic == WORKSPACE_MAGIC && w->slot_bytes == plan->slot.slot_bytes &&
                   memcmp(&w->totals, &plan->totals, sizeof w->totals) == 0
               ? w
               : NULL;
}

int64_t rapt_workspace_take(struct rapt_workspace *w) {
    for (int64_t slot = 0; slot < w->slots; slot++)
        if (!atomic_exchange_explicit(&w->busy[slot], 1, memory_order_acquire))
            return slot;
    return -1;
}

void rapt_workspace_give(struct rapt_workspace *w, int64_t slot) {
    atomic_store_explicit(&w->busy[slot], 0, memory_order_release);
}
