/* SPDX-License-Identifier: MIT
 * The process id, above 0, by which a forked child is recognised, and the number of processors; 1 where the system
 * does not tell. */
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
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
#else
    return 1;
#endif
}

#endif
