/* SPDX-License-Identifier: MIT
 *
 * Google Benchmark for C: rows are C functions, C++ stays in shim.cc. */
#ifndef RAPT_BENCHMARKS_HARNESS_H
#define RAPT_BENCHMARKS_HARNESS_H

#ifdef __cplusplus
extern "C" {
#endif

struct bench_state;

/* Measures one row by its own means and reports through the calls below; called once per repetition. */
typedef void bench_function(struct bench_state *state, const void *argument);

/* name and argument must stay. */
void bench_add(const char *name, bench_function *function, const void *argument);

void bench_time(struct bench_state *state, double seconds); /* exactly once, unless skipped */
void bench_counter(struct bench_state *state, const char *name, double value);
void bench_note(struct bench_state *state, const char *text);
void bench_skip(struct bench_state *state, const char *why); /* this machine cannot run it */
void bench_fail(struct bench_state *state, const char *why); /* it should have run; bench_run returns 1 */

/* A line for the head of the output and of the JSON file. */
void bench_context(const char *key, const char *value);

/* Counters that the console shows, in this order; a row without one shows a gap. rows: prefixes of the names of rows
 * that show it, up to the first slash, separated by spaces; NULL = all. */
struct bench_column {
    const char *counter, *title, *unit;
    double factor;
    int decimals;
    const char *rows;
};

/* Runs all rows; argv is Google Benchmark's. Returns the exit status: 1 if a row failed, 2 for wrong usage. */
int bench_run(int argc, char **argv, const struct bench_column *columns, int column_count);

#ifdef __cplusplus
}
#endif
#endif
