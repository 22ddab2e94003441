/* SPDX-License-Identifier: MIT
 * Checks that no output shares a byte with anything else. */
#include "validate/parts.h"

/* Each output row has its own bytes if every stride steps over all that the
 * smaller ones span. */
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
            return rapt_refuse(
                v->message, RAPT_OVERLAPPING_OUTPUT,
                "%s overlaps itself: a stride of %lld bytes steps into the %lld bytes before it", f->name,
                (long long)f->stride[next], (long long)span);
        span += (f->size[next] - 1) * f->stride[next];
        done[next] = true;
    }
    return RAPT_OK;
}

/* Sums of i * stride, 0 <= i < size, over up to three dimensions of each of
 * two tensors; strides descend. */
struct sums {
    int64_t stride[6], size[6];
    int count;
};

/* Merges two dimensions if the smaller stride divides the larger one and fills its steps. */
static void merge_dividing(struct sums *sums) {
    for (int i = sums->count - 2; i >= 0; i--) {
        const int64_t ratio = sums->stride[i] / sums->stride[i + 1];
        if (sums->stride[i] % sums->stride[i + 1] || sums->size[i + 1] < ratio)
            continue;
        sums->stride[i] = sums->stride[i + 1];
        sums->size[i] = (sums->size[i] - 1) * ratio + sums->size[i + 1];
        sums->count--;
        for (int j = i + 1; j < sums->count; j++) {
            sums->stride[j] = sums->stride[j + 1];
            sums->size[j] = sums->size[j + 1];
        }
    }
}

static void add_dimensions(struct sums *sums, const struct rapt_footprint *f) {
    for (int dim = 0; dim < 3; dim++) {
        if (f->size[dim] == 1 || f->stride[dim] == 0)
            continue;
        int at = sums->count++;
        for (; at > 0 && sums->stride[at - 1] < f->stride[dim]; at--) {
            sums->stride[at] = sums->stride[at - 1];
            sums->size[at] = sums->size[at - 1];
        }
        sums->stride[at] = f->stride[dim];
        sums->size[at] = f->size[dim];
    }
}

/* Whether a sum over the dimensions from `first` on may lie in low ... high.
 * Exact while there are steps left, true when they are spent. */
static bool reaches(const struct sums *sums, int first, int64_t low, int64_t high, int *steps) {
    if (first == sums->count || --*steps < 0)
        return *steps < 0 || (low <= 0 && high >= 0);
    const int64_t stride = sums->stride[first];
    int64_t inner = 0; /* the largest sum over the smaller strides */
    for (int i = first + 1; i < sums->count; i++)
        inner += (sums->size[i] - 1) * sums->stride[i];
    int64_t begin = low > inner ? rapt_quotient_up(low - inner, stride) : 0;
    for (; begin < sums->size[first] && begin * stride <= high; begin++)
        if (reaches(sums, first + 1, low - begin * stride, high - begin * stride, steps))
            return true;
    return false;
}

/* Whether any row of a meets any row of b. Interleaved parts of one buffer do not. */
static bool rows_meet(const struct rapt_footprint *a, const struct rapt_footprint *b) {
    const int64_t absurd = INT64_MAX / 8; /* sums below stay inside int64 */
    struct sums sums = {.count = 0};
    int steps = 4096;
    if (a->bytes > absurd || b->bytes > absurd)
        return true;
    add_dimensions(&sums, a);
    add_dimensions(&sums, b);
    merge_dividing(&sums);
    /* Counts b's rows from its last one, so that row of a - row of b = sum - offset. */
    const int64_t offset = (int64_t)(b->begin - a->begin) + b->bytes - b->row_bytes;
    return reaches(&sums, 0, offset - a->row_bytes + 1, offset + b->row_bytes - 1, &steps);
}

static bool overlap(const struct rapt_footprint *a, const struct rapt_footprint *b) {
    return a->placed && b->placed && a->begin < b->begin + (uintptr_t)b->bytes &&
           b->begin < a->begin + (uintptr_t)a->bytes && rows_meet(a, b);
}

/* A row of states is read before it is written, so a state may be updated in place. */
static bool is_same_state(const struct rapt_footprint *a, const struct rapt_footprint *b) {
    return a->state && b->state && a->state->data == b->state->data &&
           a->state->batch_stride_bytes == b->state->batch_stride_bytes &&
           a->state->head_stride_bytes == b->state->head_stride_bytes &&
           a->state->token_stride_bytes == b->state->token_stride_bytes;
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
            if (j != i && overlap(written, &v->footprints[j]) && !is_same_state(written, &v->footprints[j]))
                return rapt_refuse(v->message, RAPT_OVERLAPPING_OUTPUT, "%s overlaps %s at %p", written->name,
                                   v->footprints[j].name, (void *)v->footprints[j].begin);
    }
    return RAPT_OK;
}
