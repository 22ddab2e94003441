/* SPDX-License-Identifier: MIT
 * One call of a layer: its first refusal or failure, its scratch memory, and
 * the steps that layers are made of. Once status is not RAPT_OK every step
 * does nothing, so a layer is a straight list of steps and one
 * `return rapt_call_end(&call)`. From rapt_call_begin to that, checks of
 * numbers included, a layer runs in the normal floating-point environment;
 * products and attention, which may call the caller's functions, begin in the
 * caller's. */
#ifndef RAPT_LAYERS_CALL_H
#define RAPT_LAYERS_CALL_H

#include <stdbool.h>
#include <string.h>

#include "fpenv.h"
#include "rapt/layers.h"

enum { RAPT_CALL_BLOCKS = 16 };

struct rapt_call {
    rapt_status status;
    rapt_message *message;
    const rapt_run_options *options;
    rapt_fpenv environment; /* the caller's */
    int32_t isa;
    int blocks;
    void *block[RAPT_CALL_BLOCKS];
};

/* desc: a layer's descriptor, which begins with struct_size; desc_bytes: its
 * size as compiled, 0 = no descriptor. */
struct rapt_call rapt_call_begin(rapt_message *message, const rapt_run_options *options, const void *desc,
                                 size_t desc_bytes);

/* Sets the isa of the call. Refuses one that this machine lacks, and invalid options, before anything is written. */
void rapt_call_isa(struct rapt_call *call, int32_t isa);

/* Frees the scratch memory, restores the caller's floating-point environment and returns the status. */
rapt_status rapt_call_end(struct rapt_call *call);

/* Records a refusal unless one is recorded already; returns false. */
bool rapt_call_refuse(struct rapt_call *call, rapt_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Refuses required data that are NULL. */
bool rapt_call_needs(struct rapt_call *call, const void *data, const char *name);

/* Refuses unaligned numbers by the caller's name; products and attention know only their own, or do not look at all.
 * NULL is aligned. */
bool rapt_call_aligned(struct rapt_call *call, const float *data, const char *name);

/* Refuses a size outside first ... 2^40. */
bool rapt_call_size(struct rapt_call *call, int64_t size, int64_t first, const char *name);

/* Whether any field of a tensor is set: data that a failed allocation left NULL do not make it absent. */
static inline bool rapt_call_has(const rapt_tensor *tensor) {
    static const rapt_tensor none = {0};
    return memcmp(tensor, &none, sizeof none) != 0;
}

/* A copy of attention. ASSERT unless the call has failed: its struct_size is
 * known, all that the layer fills in is empty, batch * length is at most 2^60
 * and heads at most 2^20. Otherwise sizes are 0. */
rapt_attention_desc rapt_call_attention(struct rapt_call *call, const rapt_attention_desc *attention);

/* Refuses a linear layer that is malformed or does not read `in` numbers;
 * reads says whose they are: "x has". in = 0 takes any width. */
bool rapt_call_linear(struct rapt_call *call, const char *name, const rapt_linear *linear, int64_t in,
                      const char *reads);

/* Refuses a * b * c floats that no memory can hold; a, b, c >= 0. A size of 0 counts as 1, as in rapt_attention:
 * strides are products of the others. */
bool rapt_call_product(struct rapt_call *call, int64_t a, int64_t b, int64_t c);

/* given or, if that is NULL, scratch memory for a * b * c floats. NULL once the
 * call has failed. */
float *rapt_call_floats(struct rapt_call *call, float *given, int64_t a, int64_t b, int64_t c);

/* out = linear(x); x is [rows][linear->in], out [rows][out_stride] floats. An
 * out_stride of 0 is linear->out. */
void rapt_call_project(struct rapt_call *call, const rapt_linear *linear, const float *x, int64_t rows, float *out,
                       int64_t out_stride);

/* The share of x in linear([... x ...]), where x is [rows][width] and begins at
 * input `first` of linear; the bias joins if first is 0. */
void rapt_call_project_part(struct rapt_call *call, const rapt_linear *linear, int64_t first, int64_t width,
                            const float *x, int64_t rows, float *out);

/* Entry i of a list that has data. Atomic, so that the compiler cannot read an
 * entry again after it was checked. */
static inline int64_t rapt_call_index(rapt_index_list list, int64_t i) {
    const int64_t stride = list.stride_bytes ? list.stride_bytes : list.index_bytes;
    const char *entry = (const char *)list.data + i * stride;
    return list.index_bytes == 4 ? __atomic_load_n((const int32_t *)(const void *)entry, __ATOMIC_RELAXED)
                                 : __atomic_load_n((const int64_t *)(const void *)entry, __ATOMIC_RELAXED);
}

/* Whether two arrays share a byte; NULL has none. */
static inline bool rapt_call_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
    const uintptr_t at = (uintptr_t)a, other = (uintptr_t)b;
    return a && b && a_bytes && b_bytes && (other - at < (uintptr_t)a_bytes || at - other < (uintptr_t)b_bytes);
}

/* The plan's refusals, before anything is written. */
void rapt_call_check(struct rapt_call *call, const rapt_attention_desc *desc);
void rapt_call_attend(struct rapt_call *call, const rapt_attention_desc *desc);

/* scores = query . key, neither scaled nor masked, in the rows of queries that
 * exist; nothing if scores is NULL. Overwrites desc->out. */
void rapt_call_scores(struct rapt_call *call, const rapt_attention_desc *desc, float *scores);

#endif
