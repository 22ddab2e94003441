/* SPDX-License-Identifier: MIT
 * A perceptually uniform colour map. Colours are 0xRRGGBB. */
#ifndef RAPT_VIRIDIS_H
#define RAPT_VIRIDIS_H

#include <stdbool.h>
#include <stdint.h>

/* The colour at place, 0 ... 1; outside, and for NaN, the nearer end's. */
uint32_t viridis(double place);

/* Whether text on this colour reads better in black than in white. */
bool viridis_wants_black(uint32_t colour);

#endif
