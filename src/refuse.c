/* SPDX-License-Identifier: MIT */
#include "refuse.h"

#include <stdarg.h>
#include <stdio.h>

rapt_status rapt_refuse(rapt_message *message, rapt_status status, const char *format, ...) {
    if (message) {
        va_list values;
        va_start(values, format);
        vsnprintf(message->text, sizeof message->text, format, values);
        va_end(values);
    }
    return status;
}

rapt_status rapt_refuse_run(rapt_message *message, rapt_status status) {
    return status == RAPT_OK ? RAPT_OK : rapt_refuse(message, status, "%s", rapt_status_text(status));
}

void rapt_clear_message(rapt_message *message) {
    if (message)
        message->text[0] = 0;
}

rapt_status rapt_check_reserved(const char *name, const uint64_t *words, int count, rapt_message *message) {
    for (int i = 0; i < count; i++)
        if (words[i])
            return rapt_refuse(message, RAPT_UNUSED_FIELD, "%s[%d] = %llu is not 0", name, i,
                               (unsigned long long)words[i]);
    return RAPT_OK;
}

rapt_status rapt_check_reserved_zero(const char *struct_name, int32_t value, rapt_message *message) {
    if (value)
        return rapt_refuse(message, RAPT_UNUSED_FIELD, "%sreserved_zero = %d is not 0", struct_name, (int)value);
    return RAPT_OK;
}
