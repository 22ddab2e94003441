/* SPDX-License-Identifier: MIT
 * What the stages hand to each other: validate -> dispatch -> plan -> schedule -> attend -> merge. */
#ifndef RAPT_INTERNAL_H
#define RAPT_INTERNAL_H

#if defined(__FAST_MATH__) || defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "the numeric order needs IEEE arithmetic: build without fast-math flags"
#endif

#include "kernels.h"
#include "rapt/rapt.h"

/* validate.c: every refusal. ASSERT desc is safe to plan and run when it returns
 * RAPT_OK; value_dim = 0 is still 0. message may be NULL. Not inlined: it
 * computes in the floating-point environment that the caller has set. */
__attribute__((noinline)) rapt_status rapt_validate(const rapt_attention_desc *desc, rapt_message *message);

/* Writes message (if any) and returns status, so that refusals are one line. */
rapt_status rapt_refuse(rapt_message *message, rapt_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* dispatch.c: the table for a requested isa (RAPT_ISA_AUTO: environment, then
 * the best), or a refusal. */
rapt_status rapt_dispatch(rapt_isa isa, const struct rapt_table **table, rapt_message *message);

/* Entry i of a list; list.data is not NULL. */
static inline int64_t rapt_index_at(rapt_index_list list, int64_t i) {
    return list.index_bytes == 4 ? ((const int32_t *)list.data)[i] : ((const int64_t *)list.data)[i];
}

#endif
