/* SPDX-License-Identifier: MIT
 *
 * What the machine can do at best, measured beside each row and remembered
 * over the run. */
#ifndef RAPT_BENCHMARKS_PEAKS_H
#define RAPT_BENCHMARKS_PEAKS_H

#include "isa.h"
#include "measure.h"
#include "memory.h"
#include "rapt/rapt.h"

enum { PEAK_MAX_THREADS = 256 };

/* FMAs on registers; for the units of order 2, RAPT_ISA_AMX and RAPT_ISA_AVX512_BF16, their products. */
struct fma_peak {
    rapt_isa isa;
    int threads;
    struct contender contender; /* one call is about a millisecond */
    double flops;               /* of one call */
};

struct stream_way;

/* Reading memory once. */
struct stream_peak {
    int threads;
    struct contender contender;
    const struct arena *arena;
    size_t region_bytes;
    size_t bytes;                      /* read by one call: the region in equal parts for the threads */
    size_t *cursor;                    /* next region, shared with rows that read regions too */
    const struct stream_way *only_way; /* NULL: the fastest in turns */
    unsigned calls;
};

bool peak_known(rapt_isa isa); /* there is a loop for it, and this machine has the instructions */
bool peak_is_of_unit(rapt_isa isa); /* of bfloat16; a unit has no reads of its own */
bool peak_unit_takes_f16(void);     /* at the same rate */
void fma_peak_init(struct fma_peak *peak, rapt_isa isa, int threads);
void stream_peak_init(struct stream_peak *peak, const struct arena *arena, size_t region_bytes,
                      size_t *cursor, int threads);

/* Finds the fastest ways to read; call it once, before stream peaks run. text says which it took. */
void stream_choose(const struct arena *arena, rapt_isa isa, char *text, size_t text_bytes);

/* Rates per second of a measured contender, recorded for the history below; at least those of fewer threads, as others
 * may have used the cores. */
double fma_peak_rate(const struct fma_peak *peak);
double stream_peak_rate(const struct stream_peak *peak);

/* The rates measured so far, all 0 if none. stream with RAPT_ISA_AUTO. */
struct peak_range {
    double highest, lowest, latest;
};
struct peak_range peak_history(rapt_isa isa, int threads);

/* How far a rate is below the range's highest: 0.1 = 10 %. */
double peak_drift(struct peak_range range, double rate);

/* Above this, the output warns. */
static const double tolerated_peak_drift = 0.1;

/* Threads up to this many have peaks and rows: 1, 2, 4, 8 ... and all. */
int peak_threads(void);

/* The next of these numbers; 0 after the last. */
int peak_more_threads(int threads);

#endif
