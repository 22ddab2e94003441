/* SPDX-License-Identifier: MIT
 * What Linux's /proc/cpuinfo says. */
#ifndef RAPT_CPU_NAME_H
#define RAPT_CPU_NAME_H

#include <stddef.h>

/* The CPU's name as the file at path has it, on ARM by its numbers, which are told too where they are unknown; "" where
 * there is neither. Returns name. */
const char *cpu_name(const char *path, char *name, size_t bytes);

/* All features of the first CPU, with a space between; "" likewise. Returns flags. */
const char *cpu_flags(const char *path, char *flags, size_t bytes);

#endif
