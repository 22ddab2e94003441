/* SPDX-License-Identifier: MIT */
#ifndef RAPT_BENCHMARKS_MACHINE_H
#define RAPT_BENCHMARKS_MACHINE_H

#include <stddef.h>

/* The class of processor, as the system names it. */
void machine_line(char *text, size_t text_bytes);

/* The kernel tables that run here. */
void isa_line(char *text, size_t text_bytes);

#endif
