/* SPDX-License-Identifier: MIT
 * For the files of validate/ only; others include validate.h. */
#ifndef RAPT_VALIDATE_PARTS_H
#define RAPT_VALIDATE_PARTS_H

#include "checked.h"
#include "internal.h"
#include "rapt/states.h"
#include "refuse.h"
#include "validate/validate.h"

/* Bytes that a present tensor or list touches: rows of row_bytes at the
 * address begin + any sum of i * stride, 0 <= i < size. Strides are absolute
 * values; begin is the lowest address. */
struct rapt_footprint {
    const char *name;
    uintptr_t begin;
    int64_t bytes; /* to the end of the last row */
    int64_t row_bytes;
    int64_t size[3], stride[3]; /* batch, head, token */
    bool output, placed;        /* begin is known */
    const rapt_tensor *state;   /* set if a state may be updated in place; NULL otherwise */
};

/* Bytes [low, high) of an array, counted from its data. */
struct rapt_reach {
    int64_t low, high;
};

/* Adds a dimension; false on overflow. */
static inline bool rapt_add_reach(int64_t size, int64_t stride, struct rapt_reach *reach) {
    int64_t bytes, *end = stride < 0 ? &reach->low : &reach->high;
    return rapt_mul_fits(size - 1, stride, &bytes) && rapt_add_fits(*end, bytes, end);
}

/* Sets begin, bytes and placed; false if the array leaves the address space. data may be NULL: known later. */
static inline bool rapt_place(struct rapt_footprint *footprint, const void *data, struct rapt_reach reach) {
    const uintptr_t at = (uintptr_t)data;
    if (reach.low < -INT64_MAX ||
        (data && (at < (uint64_t)-reach.low || UINTPTR_MAX - at < (uint64_t)reach.high)) ||
        !rapt_add_fits(reach.high, -reach.low, &footprint->bytes))
        return false;
    footprint->begin = at - (uintptr_t)-reach.low;
    footprint->placed = data != NULL;
    return true;
}

enum { RAPT_SCALE_NAMES = 4 };   /* scales and zero points of keys and values */
enum { RAPT_FOOTPRINTS = 40 }; /* more than tensors, index lists and head lists */

/* Which memory there is. */
enum rapt_memory {
    RAPT_MEMORY_GIVEN,  /* the descriptor has data */
    RAPT_MEMORY_LATER,  /* it has none: tensors with a dtype are present all the same */
    RAPT_MEMORY_BINDING /* its data are a binding's; planning checked everything else */
};

/* One run through the checks; each gives RAPT_OK or a refusal. */
struct rapt_validation {
    const rapt_attention_desc *desc; /* complete */
    rapt_message *message;
    enum rapt_memory memory;
    int footprint_count, scale_name_count;
    char scale_names[RAPT_SCALE_NAMES][24]; /* "value.zero_points" */
    struct rapt_footprint footprints[RAPT_FOOTPRINTS];
};

/* validate/fields.c: sizes, each with its range; flags. */
#define RAPT_MAX_SIZE ((int64_t)1 << 40)
struct rapt_size {
    const char *name;
    int64_t size, least, most;
};
rapt_status rapt_check_sizes(const struct rapt_size *sizes, size_t count, rapt_message *message);
/* Refuses the first field that is set of a tensor or list whose data is NULL. */
struct rapt_field {
    const char *name;
    int64_t value;
};
rapt_status rapt_check_unset(const char *owner, const struct rapt_field *fields, size_t count, rapt_message *message);
rapt_status rapt_check_enum(const char *name, int32_t value, int32_t last, rapt_message *message);
rapt_status rapt_check_isa(int32_t isa, rapt_message *message);

/* validate/tensors.c: fields, dtype, NULL, alignment, strides, extent of each tensor. */
rapt_status rapt_check_tensors(struct rapt_validation *v);

/* The same for merging: one state, and the outputs. */
rapt_status rapt_check_merging(struct rapt_validation *v, const rapt_states_desc *desc, const char *name,
                               const rapt_tensor *state);

/* validate/lists.c: the fields and the memory of a list with so many entries; the memory of any array. */
rapt_status rapt_check_list(struct rapt_validation *v, const char *name, rapt_index_list list, int64_t count);
rapt_status rapt_check_list_bytes(struct rapt_validation *v, const char *name, const void *data, int64_t count,
                                  int64_t entry_bytes, int64_t stride_bytes);

/* validate/lists.c: integers that are each least ... most; where packed sequences begin and end. Either list may be
 * absent. */
struct rapt_bounded_list {
    const char *name;
    rapt_index_list list;
    int64_t least, most;
};
struct rapt_offset_list {
    const char *name, *length_name, *tokens_name;
    rapt_index_list list;
    int64_t length, tokens; /* of a sequence at most, of all sequences */
};
rapt_status rapt_check_bounded(const struct rapt_bounded_list *bounded, int64_t count, rapt_message *message);
rapt_status rapt_check_offsets(const struct rapt_offset_list *offsets, int64_t batch, rapt_message *message);
rapt_status rapt_refuse_entry(const char *name, int64_t i, int64_t entry, int64_t least, int64_t most,
                              rapt_message *message);

/* validate/lists.c: integers per sequence, floats per head. */
rapt_status rapt_check_index_lists(struct rapt_validation *v);
rapt_status rapt_check_head_lists(struct rapt_validation *v);

/* Repeats the list checked last for each sequence, so many bytes apart; name: of the stride's field. */
rapt_status rapt_repeat_list(struct rapt_validation *v, const char *name, int64_t batch, int64_t stride_bytes,
                             int64_t index_bytes);

/* validate/pages.c: fields of page tables; then, with legal lengths, their lists and entries. */
rapt_status rapt_check_page_tables(struct rapt_validation *v);
rapt_status rapt_check_page_lists(struct rapt_validation *v);

/* The same for a table outside an attention descriptor, and the memory of its lists for `batch` sequences. */
struct rapt_page_names {
    const char *table, *entries, *offsets, *batch_stride;
};
rapt_status rapt_check_page_fields(struct rapt_validation *v, const char *name, const rapt_page_table *table);
rapt_status rapt_check_page_memory(struct rapt_validation *v, const struct rapt_page_names *names,
                                   const rapt_page_table *table, int64_t batch);

/* validate/select.c: trees and lists of key blocks. */
rapt_status rapt_check_selection(struct rapt_validation *v);

/* validate/overlap.c: no output touches itself, another output or an input. */
rapt_status rapt_check_overlaps(struct rapt_validation *v);

/* Whether x is finite, also in base 2, in which kernels compute. */
bool rapt_finite_log2e(float x);

/* Neither data nor a dtype is given. A tensor without elements may have data = NULL and be present. */
static inline bool rapt_absent(const rapt_tensor *tensor) {
    return !tensor->data && tensor->dtype == RAPT_NO_DTYPE;
}

#endif
