/* SPDX-License-Identifier: MIT
 *
 * Times several pieces of work in turns, so that a slow moment of the machine hits all of them and their ratios
 * hold. */
#ifndef RAPT_BENCHMARKS_MEASURE_H
#define RAPT_BENCHMARKS_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

enum { MEASURE_MAX_SAMPLES = 2000 };

struct contender {
    void (*run)(void *context);
    void *context;
    int calls_per_round;

    double best_seconds, median_seconds; /* of one call; results */
    double spread;                       /* interquartile range, as a share of the median */
    double best_cpu_seconds;             /* of one call; excludes other programs */
    double seconds, cpu_seconds;         /* of all calls; of the process, all threads */
    int64_t calls;
    int calls_per_sample, sample_count;
    double samples[MEASURE_MAX_SAMPLES];
};

double now_seconds(void);

/* Whether the text of an option is a number of seconds, 0 ... 3600. */
bool seconds_parse(const char *text, double *seconds);

/* Processors that the calls had on average; 1 if nothing else used that of a single thread. */
double processors_had(const struct contender *contender);

/* After one untimed call of each: rounds, in which each contender has its calls, until both seconds and min_rounds are
 * reached. */
void measure(struct contender **contenders, int count, double seconds, int min_rounds);

#endif
