/* SPDX-License-Identifier: MIT
 * How the benchmarks measure time (benchmarks/measure.h). */
#define _POSIX_C_SOURCE 200809L
#include "../benchmarks/measure.h"

#include <time.h>

#include "support/cmocka_all.h"

static void nap(void *context) {
    const struct timespec time = {.tv_nsec = *(const long *)context};
    nanosleep(&time, NULL);
}

static void count(void *context) {
    ++*(int64_t *)context;
}

/* The one called often overflows its sample buffer; the other goes on. */
static void seconds_are_measured_in_full(void **state) {
    (void)state;
    static struct contender often, once;
    int64_t counted = 0;
    long nanoseconds = 100000;
    often = (struct contender){.run = count, .context = &counted, .calls_per_round = MEASURE_MAX_SAMPLES / 3};
    once = (struct contender){.run = nap, .context = &nanoseconds, .calls_per_round = 1};
    const double begin = now_seconds();
    measure((struct contender *[]){&often, &once}, 2, 0.2, 5);
    assert_true(now_seconds() - begin >= 0.2);
    assert_int_equal(often.calls, counted - 1); /* the first does not count */
    assert_int_equal(often.calls, once.calls * often.calls_per_round);
    assert_true(once.calls >= 5);
    assert_in_range(often.sample_count, MEASURE_MAX_SAMPLES / 2, MEASURE_MAX_SAMPLES);
    assert_true(once.best_seconds >= 100e-6 && once.best_seconds <= once.median_seconds);
    assert_true(often.best_seconds <= often.samples[0]);
}

/* The remaining samples are spread evenly over the run. */
static void samples_are_thinned(void **state) {
    (void)state;
    static struct contender contender;
    int64_t counted = 0;
    contender = (struct contender){.run = count, .context = &counted, .calls_per_round = 1};
    measure((struct contender *[]){&contender}, 1, 0, 5 * MEASURE_MAX_SAMPLES);
    assert_int_equal(contender.calls, 5 * MEASURE_MAX_SAMPLES);
    assert_int_equal(contender.calls_per_sample, 8);
    assert_int_equal(contender.sample_count, 5 * MEASURE_MAX_SAMPLES / 8);
}

static void nap_longer(void *context) {
    long *nanoseconds = context;
    nap(nanoseconds);
    *nanoseconds += 2000000;
}

/* Long rows have two rounds: neither is the median. */
static void medians_of_even_numbers_lie_between(void **state) {
    (void)state;
    static struct contender contender;
    long nanoseconds = 0;
    contender = (struct contender){.run = nap_longer, .context = &nanoseconds, .calls_per_round = 1};
    measure((struct contender *[]){&contender}, 1, 0, 2);
    assert_int_equal(contender.sample_count, 2);
    assert_true(contender.samples[0] < contender.median_seconds && contender.median_seconds < contender.samples[1]);
    assert_true(contender.best_seconds < contender.median_seconds);
}

static void seconds_are_numbers(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "x", "1x", "1 ", "-1", "nan", "inf", "3601"};
    double seconds = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(seconds_parse(wrong[i], &seconds));
    assert_true(seconds == 7);
    assert_true(seconds_parse("0.25", &seconds) && seconds == 0.25);
    assert_true(seconds_parse("0", &seconds) && seconds == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(seconds_are_measured_in_full),
                                       cmocka_unit_test(samples_are_thinned),
                                       cmocka_unit_test(medians_of_even_numbers_lie_between),
                                       cmocka_unit_test(seconds_are_numbers)};
    return cmocka_run_group_tests_name("measure", tests, NULL, NULL);
}
