/* SPDX-License-Identifier: MIT */
#include "numerics.h"

#include "dispatch.h"
#include "format.h"
#include "refuse.h"

static const char order_names[] = "0, 1 (float32), 2 (bfloat16, float16), 3 (float32 in parts), -1 (the fastest)";

rapt_status rapt_check_numerics_number(const rapt_attention_desc *desc, rapt_message *message) {
    if (desc->numerics < RAPT_NUMERICS_FASTEST || desc->numerics > RAPT_NUMERICS_ORDER_3)
        return rapt_refuse(message, RAPT_UNSUPPORTED_FLAG, "numerics = %d is not one of %s", (int)desc->numerics,
                           order_names);
    return RAPT_OK;
}

static const char *text_of(const rapt_tensor *tensor) { return rapt_format_info(rapt_format_of(tensor->dtype))->text; }

/* Absent tensors have no elements here. */
static bool is_one_of(const rapt_tensor *tensor, int32_t dtype, int32_t other) {
    return tensor->dtype == RAPT_NO_DTYPE || tensor->dtype == dtype || tensor->dtype == other;
}

static rapt_status refuse_type(const rapt_attention_desc *desc, const char *name, const rapt_tensor *tensor,
                               rapt_message *message) {
    const bool is_split = desc->numerics == RAPT_NUMERICS_ORDER_3;
    return rapt_refuse(message, RAPT_UNSUPPORTED_DTYPE,
                       "numerics = %d takes query, key and value that are all %s, but %s.dtype = %d (%s)",
                       (int)desc->numerics, is_split ? "float32" : "bfloat16 or all float16", name,
                       (int)tensor->dtype, text_of(tensor));
}

static rapt_status check_types(const rapt_attention_desc *desc, rapt_message *message) {
    const bool is_split = desc->numerics == RAPT_NUMERICS_ORDER_3;
    const rapt_tensor *const tensors[] = {&desc->query, &desc->key, &desc->value};
    static const char *const names[] = {"query", "key", "value"};
    int32_t first = is_split ? RAPT_F32 : RAPT_BF16, second = is_split ? RAPT_F32 : RAPT_F16;
    for (int i = 0; i < 3; i++) {
        if (!is_one_of(tensors[i], first, second))
            return refuse_type(desc, names[i], tensors[i], message);
        if (tensors[i]->dtype != RAPT_NO_DTYPE)
            first = second = tensors[i]->dtype;
    }
    return RAPT_OK;
}

rapt_status rapt_check_numerics_types(const rapt_attention_desc *desc, rapt_message *message) {
    return desc->numerics <= RAPT_NUMERICS_ORDER_1 ? RAPT_OK : check_types(desc, message);
}

static int type_of(const rapt_attention_desc *desc) {
    return desc->query.dtype == RAPT_F16 ? RAPT_OF_F16 : desc->query.dtype == RAPT_F32 ? RAPT_OF_F32 : RAPT_OF_BF16;
}

static const struct rapt_table *with_unit(const rapt_attention_desc *desc, const struct rapt_table *table) {
    return rapt_unit_of(table, (rapt_isa)desc->isa, type_of(desc));
}

/* Without a unit order 1 is the fastest. */
static int32_t fastest(const rapt_attention_desc *desc, const struct rapt_table *table) {
    const int32_t dtype = desc->query.dtype;
    const bool is_one = is_one_of(&desc->key, dtype, dtype) && is_one_of(&desc->value, dtype, dtype);
    const bool fits = is_one && (dtype == RAPT_BF16 || dtype == RAPT_F16);
    return fits && with_unit(desc, table) ? RAPT_NUMERICS_ORDER_2 : RAPT_NUMERICS_ORDER_1;
}

int32_t rapt_numerics_of(const rapt_attention_desc *desc, const struct rapt_table *table) {
    if (desc->numerics == RAPT_NUMERICS_FASTEST)
        return fastest(desc, table);
    return desc->numerics > RAPT_NUMERICS_ORDER_1 ? desc->numerics : RAPT_NUMERICS_ORDER_1;
}

const struct rapt_table *rapt_unit_table(const rapt_attention_desc *desc, const struct rapt_table *table) {
    const struct rapt_table *unit = with_unit(desc, table);
    return unit ? unit : table->of_unit[type_of(desc)];
}
