/* SPDX-License-Identifier: MIT
 * Fields that descriptors of all operations have: sizes, flags, reserved words. */
#include "isa.h"
#include "validate/parts.h"

rapt_status rapt_check_sizes(const struct rapt_size *sizes, size_t count, rapt_message *message) {
    for (const struct rapt_size *s = sizes; s < sizes + count; s++)
        if (s->size < s->least || s->size > s->most)
            return rapt_refuse(message, RAPT_INVALID_SHAPE, "%s = %lld is outside %lld ... %lld", s->name,
                               (long long)s->size, (long long)s->least, (long long)s->most);
    return RAPT_OK;
}

rapt_status rapt_check_unset(const char *owner, const struct rapt_field *fields, size_t count, rapt_message *message) {
    for (const struct rapt_field *field = fields; field < fields + count; field++)
        if (field->value)
            return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s.data is NULL, but its %s = %lld", owner, field->name,
                               (long long)field->value);
    return RAPT_OK;
}

rapt_status rapt_check_enum(const char *name, int32_t value, int32_t last, rapt_message *message) {
    if (value < 0 || value > last)
        return rapt_refuse(message, RAPT_UNSUPPORTED_FLAG, "%s = %d is outside 0 ... %d", name, (int)value, (int)last);
    return RAPT_OK;
}

rapt_status rapt_check_isa(int32_t isa, rapt_message *message) {
    return rapt_check_enum("isa", isa, RAPT_ISA_COUNT - 1, message);
}
