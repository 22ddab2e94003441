/* SPDX-License-Identifier: MIT */
#ifndef RAPT_LAYERS_PHILOX_H
#define RAPT_LAYERS_PHILOX_H

#include <stdint.h>

/* Philox 4x32 of 10 rounds, as in Random123. */
void rapt_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t result[4]);

#endif
