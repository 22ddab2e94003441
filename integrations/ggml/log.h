/* SPDX-License-Identifier: MIT
 * Messages go to ggml's log. */
#ifndef RAPT_GGML_LOG_H
#define RAPT_GGML_LOG_H

#include "ggml.h"

void rapt_ggml_log(enum ggml_log_level level, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);

/* RAPT_GGML in the environment: 0 turns the backend off; stats reports the nodes left to others, and prints counters on
 * stderr when a backend ends. */
bool rapt_ggml_is_off(void);
bool rapt_ggml_is_talkative(void);
void rapt_ggml_log_counters(void);

#endif
