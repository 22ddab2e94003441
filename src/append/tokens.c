/* SPDX-License-Identifier: MIT
 * From the lists of a descriptor to the tokens of a task and their places. Lists may have changed since they were
 * checked: every number is read once and checked again. */
#include "append/append.h"
#include "append/lists.h"

enum { PLACES_TOGETHER = 16 }; /* that belong to one task */

static bool belongs(const struct rapt_append *append, int64_t place, int64_t task) {
    const uint64_t group = (uint64_t)place / PLACES_TOGETHER;
    return (uint32_t)(group ^ group >> 32) % (uint32_t)append->tasks == (uint32_t)task;
}

/* False if the token is not stored, or not by this task. */
static bool place_by_slot(const struct rapt_append *append, int64_t number, int64_t task,
                          struct rapt_append_token *token) {
    const int64_t slot = rapt_index_at(append->desc.slots, number);
    if (!rapt_is_inside(slot, 0, append->pages * append->page_tokens - 1) || !belongs(append, slot, task))
        return false;
    token->page = slot / append->page_tokens;
    token->offset = slot % append->page_tokens;
    return true;
}

static bool place_by_position(const struct rapt_append *append, int64_t b, int64_t position, int64_t task,
                              struct rapt_append_token *token) {
    if (append->page_tokens <= 0) /* checked lists have no tokens then */
        return false;
    token->page = rapt_append_page(&append->desc, b, position / append->page_tokens);
    token->offset = position % append->page_tokens;
    return token->page >= 0 && belongs(append, token->page * append->page_tokens + token->offset, task);
}

/* At its place in the source. */
static bool place_alike(const struct rapt_append *append, int64_t task, struct rapt_append_token *token) {
    token->page = token->batch;
    token->offset = token->row;
    return belongs(append, token->page * append->page_tokens + token->offset, task);
}

static void take_sequence(const struct rapt_append *append, int64_t b, int64_t task, rapt_take_token take) {
    const rapt_append_desc *d = &append->desc;
    const struct rapt_append_run run = rapt_append_run_of(d, b);
    const bool rotates = d->rotary.pairing != RAPT_ROTARY_NONE;
    const int64_t first = d->positions.data ? rapt_index_at(d->positions, b) : 0;
    const struct rapt_rotary_range rotary = rapt_rotary_range_of(&d->rotary);
    const int64_t least = rapt_rotates_alone(d) ? rotary.least : 0;
    for (int64_t i = 0; i < run.count && rapt_is_inside(first, least, RAPT_MAX_POSITION); i++) {
        const int64_t number = run.first + i;
        struct rapt_append_token token = {.batch = d->offsets.data ? 0 : b, .row = d->offsets.data ? number : i};
        if (rapt_rotates_alone(d) ? !place_alike(append, task, &token)
            : d->slots.data       ? !place_by_slot(append, number, task, &token)
                                  : !place_by_position(append, b, first + i, task, &token))
            continue;
        token.rotary_position = d->rotary_positions.data ? rapt_index_at(d->rotary_positions, number) : first + i;
        if (!rotates || rapt_is_inside(token.rotary_position, rotary.least, rotary.most))
            take(append, &token);
    }
}

void rapt_append_tokens(const struct rapt_append *append, int64_t task, rapt_take_token take) {
    for (int64_t b = 0; b < append->desc.batch; b++)
        take_sequence(append, b, task, take);
}
