/* SPDX-License-Identifier: MIT */
#ifndef RAPT_MEMORY_FREE_H
#define RAPT_MEMORY_FREE_H

#include <stdint.h>

/* Bytes that this process can still use without pushing others out of memory or being killed; INT64_MAX if the system
 * does not tell. Systems promise more than they have and kill whoever uses it. */
int64_t memory_free(void);

#endif
