/* SPDX-License-Identifier: MIT
 *
 * rapt and the peaks for other languages: flat functions of a shared library,
 * which Python calls with ctypes. Times are taken in C, so that the caller
 * costs nothing. To be used by one thread. */
#ifndef RAPT_BENCHMARKS_CALL_H
#define RAPT_BENCHMARKS_CALL_H

#include <stddef.h>
#include <stdint.h>

struct call;

/* Plans attention on arrays [batch, heads, tokens, dim], the last query at the last key. window: how many keys
 * a query sees up to its own; 0 = no window. Returns NULL and says why where rapt refuses. */
struct call *call_new(int isa, int threads, int64_t batch, int64_t query_heads, int64_t kv_heads,
                      int64_t query_length, int64_t kv_length, int64_t head_dim, int causal, int64_t window,
                      const float *query, const float *key, const float *value, float *out, char *why,
                      size_t why_bytes);
void call_free(struct call *call);

/* Runs calls[first], calls[first + 1] ... of a circle of count, and puts the time of each into seconds. Returns
 * the rapt_status that was not RAPT_OK, if any. */
int call_run(struct call *const *calls, int64_t first, int64_t count, int64_t times, double *seconds);

/* Random numbers, far more than caches hold; NULL where memory is short. */
void *call_memory(size_t *bytes);

/* The peaks: each of the times into seconds. They return the operations or bytes of one; 0 where no loop is
 * known for isa or so many threads. Stream reads an eighth of what call_memory returned before, then the next. */
double call_fma(int isa, int threads, int64_t times, double *seconds);
double call_stream(int isa, int threads, int64_t eighth, int64_t times, double *seconds);

#endif
