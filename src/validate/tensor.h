/* SPDX-License-Identifier: MIT
 * Checks of one tensor by itself, for validate/tensors.c and validate/append.c. */
#ifndef RAPT_VALIDATE_TENSOR_H
#define RAPT_VALIDATE_TENSOR_H

#include "validate/parts.h"

/* Bits of a tensor's role; without any it is a required input. */
enum {
    RAPT_ROLE_INPUT = 0,
    RAPT_ROLE_OPTIONAL = 1,
    RAPT_ROLE_OUTPUT = 2,
    RAPT_ROLE_OPTIONAL_OUTPUT = RAPT_ROLE_OPTIONAL | RAPT_ROLE_OUTPUT,
    RAPT_ROLE_IN_PLACE = 4,  /* may be the memory of another tensor that has this bit, row for row */
    RAPT_ROLE_SCALES_OUT = 8 /* its scales are outputs as well */
};

/* What the descriptor says about one of its tensors. */
struct rapt_tensor_rule {
    const char *name;
    const rapt_tensor *tensor;
    const int64_t *size; /* batch (or page), head, token */
    int64_t row;         /* elements of the innermost dimension */
    int32_t uses;        /* of format.h, any of which suffices; 0: scales or zero points */
    int role;
    bool paged;          /* the first dimension is pages */
};

/* Fields, dtype, NULL, alignment, strides, extent; the same of its scales and zero points. */
rapt_status rapt_check_tensor(struct rapt_validation *v, const struct rapt_tensor_rule *rule);

#endif
