/* SPDX-License-Identifier: MIT
 * What the system says of the process: a number above 0, by which a forked child notices that it is another one, and
 * the processors. Where it cannot be asked: 1. */
#ifndef RAPT_PROCESS_H
#define RAPT_PROCESS_H

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
static inline int rapt_process(void) { return (int)getpid(); }
#else
static inline int rapt_process(void) { return 1; }
#endif

static inline int rapt_processors(void) {
#ifdef _SC_NPROCESSORS_ONLN
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
#else
    return 1;
#endif
}

#endif
