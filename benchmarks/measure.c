/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static double seconds_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double now_seconds(void) {
    return seconds_of(CLOCK_MONOTONIC);
}

double processors_had(const struct contender *contender) {
    return contender->seconds > 0 ? contender->cpu_seconds / contender->seconds : 0;
}

bool seconds_parse(const char *text, double *seconds) {
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= 3600))
        return false;
    *seconds = value;
    return true;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void finish(struct contender *contender) {
    qsort(contender->samples, (size_t)contender->sample_count, sizeof contender->samples[0], ascending);
    const double *middle = &contender->samples[contender->sample_count / 2];
    contender->median_seconds = contender->sample_count % 2 ? *middle : (middle[-1] + *middle) / 2;
    contender->spread =
        (contender->samples[contender->sample_count * 3 / 4] - contender->samples[contender->sample_count / 4]) /
        contender->median_seconds;
}

/* When full, drops every second sample; from then on keeps every second call, then every fourth ... */
static void keep(struct contender *contender, double taken) {
    if (taken < contender->best_seconds)
        contender->best_seconds = taken;
    if (contender->calls++ % contender->calls_per_sample != 0)
        return;
    if (contender->sample_count == MEASURE_MAX_SAMPLES) {
        contender->sample_count /= 2;
        contender->calls_per_sample *= 2;
        for (int i = 0; i < contender->sample_count; i++)
            contender->samples[i] = contender->samples[2 * i];
    }
    contender->samples[contender->sample_count++] = taken;
}

static void one_round(struct contender *contender) {
    for (int i = 0; i < contender->calls_per_round; i++) {
        double cpu_begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID), begin = now_seconds();
        contender->run(contender->context);
        double taken = now_seconds() - begin;
        keep(contender, taken);
        contender->seconds += taken;
        double cpu_taken = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
        contender->cpu_seconds += cpu_taken;
        if (cpu_taken < contender->best_cpu_seconds)
            contender->best_cpu_seconds = cpu_taken;
    }
}

void measure(struct contender **contenders, int count, double seconds, int min_rounds) {
    for (int c = 0; c < count; c++) {
        contenders[c]->sample_count = 0;
        contenders[c]->calls = 0;
        contenders[c]->calls_per_sample = 1;
        contenders[c]->seconds = contenders[c]->cpu_seconds = 0;
        contenders[c]->best_seconds = contenders[c]->best_cpu_seconds = HUGE_VAL;
        contenders[c]->run(contenders[c]->context);
    }
    double end = now_seconds() + seconds;
    for (int round = 0; round < min_rounds || now_seconds() < end; round++)
        for (int c = 0; c < count; c++)
            one_round(contenders[c]);
    for (int c = 0; c < count; c++)
        finish(contenders[c]);
}
