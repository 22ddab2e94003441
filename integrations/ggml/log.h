/* SPDX-License-Identifier: MIT
 * Messages go where ggml's go. */
#ifndef RAPT_GGML_LOG_H
#define RAPT_GGML_LOG_H

#include "ggml.h"

void rapt_ggml_log(enum ggml_log_level level, const char *format, ...) GGML_ATTRIBUTE_FORMAT(2, 3);

/* The environment's RAPT_GGML: 0 turns the backend off; stats says which nodes are left to others, and prints the
 * counters on stderr when a backend ends. */
bool rapt_ggml_is_off(void);
bool rapt_ggml_is_talkative(void);
void rapt_ggml_log_counters(void);

#endif
