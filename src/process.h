/* SPDX-License-Identifier: MIT
 * The number of this process, above 0, by which a forked child notices that it is another one; 1 where none can be. */
#ifndef RAPT_PROCESS_H
#define RAPT_PROCESS_H

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
static inline int rapt_process(void) { return (int)getpid(); }
#else
static inline int rapt_process(void) { return 1; }
#endif

#endif
