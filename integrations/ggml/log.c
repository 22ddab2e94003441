/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

void rapt_ggml_log(enum ggml_log_level level, const char *format, ...) {
    char text[512], line[544];
    va_list arguments;
    ggml_log_callback callback = NULL;
    void *data = NULL;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "rapt: %s\n", text);
    ggml_log_get(&callback, &data);
    if (callback)
        callback(level, line, data);
}

static bool environment_is(const char *value) {
    const char *given = getenv("RAPT_GGML");
    return given && strcmp(given, value) == 0;
}

bool rapt_ggml_is_off(void) { return environment_is("0"); }
bool rapt_ggml_is_talkative(void) { return environment_is("stats"); }

void rapt_ggml_log_counters(void) {
    const struct rapt_ggml_counters *c = &rapt_ggml_counters;
    if (rapt_ggml_is_talkative())
        fprintf(stderr, "rapt: %" PRIu64 " calls, %" PRIu64 " plans, %" PRIu64 " declined, %" PRIu64 " failed\n",
                c->calls, c->plans, c->declined, c->failed);
}
