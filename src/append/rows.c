/* SPDX-License-Identifier: MIT
 * The rows of a token: read, rotated, stored. */
#include "append/append.h"

#include <string.h>

/* The heads of one token on one side. */
struct heads {
    const struct rapt_append *append;
    const struct rapt_append_side *side;
    const char *from;
    char *into;
    float *scales;      /* NULL: none */
    int8_t *zero_points;
    const float *cosines, *sines; /* NULL: not rotated */
};

static const char *row_of(const rapt_tensor *tensor, const struct rapt_append_token *token) {
    return (const char *)tensor->data + token->batch * tensor->batch_stride_bytes +
           token->row * tensor->token_stride_bytes;
}

static char *place_of(const struct rapt_append_side *side, const struct rapt_append_token *token) {
    return (char *)side->into->data + token->page * side->page_stride_bytes +
           token->offset * side->into->token_stride_bytes;
}

static void place_scales(struct heads *h, const struct rapt_append_token *token) {
    const rapt_tensor *into = h->side->into;
    const int64_t bytes =
        token->page * into->scale_batch_stride_bytes + token->offset * into->scale_token_stride_bytes;
    if (into->scales)
        h->scales = (float *)(void *)((char *)into->scales + bytes);
    if (into->zero_points)
        h->zero_points = (int8_t *)into->zero_points + bytes / (int64_t)sizeof(float);
}

/* A stored row as float32: in place, or in wide. */
static const float *widen(const struct heads *h, const char *from, float *wide) {
    if (h->side->from_format == RAPT_FORMAT_F32)
        return (const float *)(const void *)from;
    const struct rapt_stage_args args = {
        .into = wide, .from = from, .rows = 1, .dim = h->side->dim, .format = h->side->from_format};
    h->append->table->stage(&args);
    return wide;
}

static const float *rotate(const struct heads *h, const float *row, float *rotated) {
    const rapt_rotary *rotary = &h->append->desc.rotary;
    const int pairing = rotary->pairing == RAPT_ROTARY_HALVES ? RAPT_PAIR_HALVES : RAPT_PAIR_INTERLEAVED;
    const int dim = (int)rotary->dim;
    h->append->table->rotate[pairing](rotated, row, h->cosines, h->sines, dim / 2);
    memcpy(rotated + dim, row + dim, (size_t)(h->side->dim - dim) * sizeof *row);
    return rotated;
}

static void store_row(const struct heads *h, int64_t head, const char *from, char *into) {
    _Alignas(RAPT_VECTOR_BYTES) float wide[RAPT_MAX_HEAD_DIM], rotated[RAPT_MAX_HEAD_DIM];
    const int64_t scale = head * (h->side->into->scale_head_stride_bytes / (int64_t)sizeof(float));
    const float *row = widen(h, from, wide);
    const struct rapt_store_args args = {.into = into,
                                         .from = h->cosines ? rotate(h, row, rotated) : row,
                                         .dim = h->side->dim,
                                         .format = h->side->into_format,
                                         .scales = h->scales ? h->scales + scale : NULL,
                                         .zero_points = h->zero_points ? h->zero_points + scale : NULL,
                                         .group = h->side->into->scale_group,
                                         .computes = h->side->computes};
    h->append->table->store(&args);
}

static void store_heads(const struct heads *h) {
    const struct rapt_append_side *side = h->side;
    const bool copies = side->from_format == side->into_format && !h->cosines;
    const size_t row_bytes = (size_t)rapt_format_row_bytes(side->into_format, side->dim);
    const char *from = h->from;
    char *into = h->into;
    for (int64_t head = 0; head < h->append->desc.kv_heads; head++) {
        if (copies)
            memcpy(into, from, row_bytes);
        else
            store_row(h, head, from, into);
        from += side->from->head_stride_bytes;
        into += side->into->head_stride_bytes;
    }
}

static void store_rotated(const struct heads *unrotated, int64_t position) {
    _Alignas(RAPT_VECTOR_BYTES) float cosines[RAPT_MAX_PAIRS], sines[RAPT_MAX_PAIRS];
    const struct rapt_append *append = unrotated->append;
    const rapt_rotary *rotary = &append->desc.rotary;
    struct heads h = *unrotated;
    h.cosines = cosines;
    h.sines = sines;
    if (rotary->cosines) {
        const int64_t bytes = position * rotary->table_stride_bytes;
        h.cosines = (const float *)(const void *)((const char *)rotary->cosines + bytes);
        h.sines = (const float *)(const void *)((const char *)rotary->sines + bytes);
    } else {
        append->table->angles(append->angles.frequencies, append->angles.pairs, position, append->angles.factor,
                              cosines, sines);
    }
    store_heads(&h);
}

void rapt_append_rows(const struct rapt_append *append, const struct rapt_append_token *token) {
    for (int i = 0; i < RAPT_SIDES; i++) {
        const struct rapt_append_side *side = &append->side[i];
        struct heads h = {.append = append, .side = side};
        if (!side->from)
            continue;
        h.from = row_of(side->from, token);
        h.into = place_of(side, token);
        place_scales(&h, token);
        if (side->rotates)
            store_rotated(&h, token->rotary_position);
        else
            store_heads(&h);
    }
}
