/* SPDX-License-Identifier: MIT
 * Queries, keys and values in the types that --query-type, --key-type and --value-type name. */
#ifndef RAPT_KV_TYPE_H
#define RAPT_KV_TYPE_H

#include "attend/options.h"
#include "rapt/rapt.h"

/* Dies if the option is given and names no storage type of keys and values. */
void kv_type_check(const char *option, const char *given);

/* Its name. */
const char *kv_type_text(int32_t dtype);

/* Bytes of a row, and of its scale if it has one. */
int64_t kv_type_row_bytes(const rapt_tensor *tensor, int64_t dim);

/* The call on rounded queries and stored keys and values: desc's own if no option names a type. Contiguous [batch,
 * heads, tokens, dim]; their memory lives until the command ends. */
rapt_attention_desc kv_type_stored(const rapt_attention_desc *desc, const struct attend_options *options);

#endif
