/* SPDX-License-Identifier: MIT
 * The frequencies of a rotary embedding (docs/numerics.md, rotary embedding). */
#ifndef RAPT_ROTARY_H
#define RAPT_ROTARY_H

#include "internal.h"
#include "rapt/cache.h"

enum { RAPT_MAX_PAIRS = RAPT_MAX_HEAD_DIM / 2 };

/* What cosines and sines are computed from. */
struct rapt_angles {
    int pairs;
    double factor; /* of both */
    float frequencies[RAPT_MAX_PAIRS];
};

/* ASSUME rotary is valid and complete. */
void rapt_rotary_angles(const rapt_rotary *rotary, struct rapt_angles *angles);

#endif
