/* SPDX-License-Identifier: MIT
 * Linux's /proc/cpuinfo. */
#ifndef RAPT_CPU_NAME_H
#define RAPT_CPU_NAME_H

#include <stddef.h>

/* The CPU's name in the file at path; on ARM by its numbers, which are shown if unknown; "" if there is neither.
 * Returns name. */
const char *cpu_name(const char *path, char *name, size_t bytes);

/* All features of the first CPU, separated by spaces; "" if unknown. Returns flags. */
const char *cpu_flags(const char *path, char *flags, size_t bytes);

#endif
