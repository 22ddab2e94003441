/* SPDX-License-Identifier: MIT
 * Orders of operations: which one a call requests, and which types each takes. */
#ifndef RAPT_NUMERICS_H
#define RAPT_NUMERICS_H

#include "kernels.h"
#include "rapt/rapt.h"

/* Whether numerics is a rapt_numerics. */
rapt_status rapt_check_numerics_number(const rapt_attention_desc *desc, rapt_message *message);

/* Whether the order takes the types of the tensors. ASSUME the tensors are valid. */
rapt_status rapt_check_numerics_types(const rapt_attention_desc *desc, rapt_message *message);

/* The order of a valid call on this table: 1 ... 3. */
int32_t rapt_numerics_of(const rapt_attention_desc *desc, const struct rapt_table *table);

/* The table of orders 2 and 3 for the types of a valid call. */
const struct rapt_table *rapt_unit_table(const rapt_attention_desc *desc, const struct rapt_table *table);

#endif
