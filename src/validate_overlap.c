/* SPDX-License-Identifier: MIT
 * What is written must be nobody else's: tests over the touched bytes. */
#include "validate.h"

/* Each output row has its own bytes if every stride steps over all that the
 * smaller strides span. */
static rapt_status check_self(struct rapt_validation *v, const struct rapt_footprint *f) {
    int64_t span = f->row_bytes;
    bool done[3] = {f->size[0] == 1, f->size[1] == 1, f->size[2] == 1};
    for (int step = 0; step < 3; step++) {
        int next = -1;
        for (int dim = 0; dim < 3; dim++)
            if (!done[dim] && (next < 0 || f->stride[dim] < f->stride[next]))
                next = dim;
        if (next < 0)
            break;
        if (f->stride[next] < span)
            return rapt_refuse(v->message, RAPT_OVERLAPPING_OUTPUT,
                               "%s overlaps itself: a stride of %lld bytes steps into the %lld bytes before it",
                               f->name, (long long)f->stride[next], (long long)span);
        span += (f->size[next] - 1) * f->stride[next];
        done[next] = true;
    }
    return RAPT_OK;
}

/* Bytes from a place that repeats every `period` bytes, over the dimensions that do not. */
static uint64_t span_within(const struct rapt_footprint *f, int64_t period) {
    int64_t span = f->row_bytes;
    for (int dim = 0; dim < 3; dim++)
        if (f->stride[dim] % period)
            span += (f->size[dim] - 1) * f->stride[dim];
    return (uint64_t)span;
}

/* True where a and b take turns, as the parts of one fused buffer do:
 * their places modulo some stride do not meet. */
static bool interleave(const struct rapt_footprint *a, const struct rapt_footprint *b) {
    for (int dim = 0; dim < 3; dim++) {
        const uint64_t period = (uint64_t)a->stride[dim];
        if (!period)
            continue;
        const uint64_t from_a_to_b = (b->begin % period + period - a->begin % period) % period;
        if (span_within(a, (int64_t)period) <= from_a_to_b &&
            span_within(b, (int64_t)period) <= period - from_a_to_b)
            return true;
    }
    return false;
}

static bool overlap(const struct rapt_footprint *a, const struct rapt_footprint *b) {
    return a->begin < b->begin + (uintptr_t)b->bytes && b->begin < a->begin + (uintptr_t)a->bytes &&
           !interleave(a, b);
}

rapt_status rapt_check_overlaps(struct rapt_validation *v) {
    for (int i = 0; i < v->footprint_count; i++) {
        const struct rapt_footprint *written = &v->footprints[i];
        if (!written->output)
            continue;
        const rapt_status status = check_self(v, written);
        if (status != RAPT_OK)
            return status;
        for (int j = 0; j < v->footprint_count; j++)
            if (j != i && overlap(written, &v->footprints[j]))
                return rapt_refuse(v->message, RAPT_OVERLAPPING_OUTPUT, "%s overlaps %s at %p", written->name,
                                   v->footprints[j].name, (void *)v->footprints[j].begin);
    }
    return RAPT_OK;
}
