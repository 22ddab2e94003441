/* SPDX-License-Identifier: MIT
 * What a table's slots for caches take: rotation and storing of rows. */
#ifndef RAPT_KERNELS_APPEND_H
#define RAPT_KERNELS_APPEND_H

#include <stdbool.h>
#include <stdint.h>

/* Rotary embedding. Positions times frequencies are exact up to this magnitude. */
#define RAPT_MAX_ROTARY_POSITION (INT64_C(1) << 29)

enum { RAPT_PAIR_HALVES = 0, RAPT_PAIR_INTERLEAVED = 1, RAPT_PAIRINGS = 2 };

/* Stores one float32 row. Scales are those of rapt_scales, one per `group` numbers of the row; without any they are 1.
 */
struct rapt_store_args {
    char *into;
    const float *from;
    int dim, format;
    float *scales;
    int8_t *zero_points;
    int64_t group;
    bool computes; /* scales and zero points are written, not read */
};

#endif
