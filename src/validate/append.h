/* SPDX-License-Identifier: MIT
 * Refusals of complete descriptors of rapt_append. rapt_rotate's become such ones, with its names in messages. */
#ifndef RAPT_VALIDATE_APPEND_H
#define RAPT_VALIDATE_APPEND_H

#include "rapt/cache.h"
#include "validate/validate.h"

enum rapt_append_kind { RAPT_KIND_APPEND, RAPT_KIND_ROTATE };

rapt_status rapt_validate_append(const rapt_append_desc *desc, enum rapt_append_kind kind, rapt_message *message);

/* The names of fields in messages. */
struct rapt_append_names {
    const char *from[2], *into[2], *heads, *positions, *rotary_positions;
};

/* validate/append_lists.c: memory of the lists and of the rotary tables, and every entry that will be used. */
struct rapt_validation;
rapt_status rapt_check_append_lists(struct rapt_validation *v, const rapt_append_desc *d,
                                    const struct rapt_append_names *names);

/* validate/rotary.c. */
rapt_status rapt_check_rotary(const rapt_rotary *rotary, int64_t head_dim, rapt_message *message);

#endif
