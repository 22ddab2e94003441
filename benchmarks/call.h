/* SPDX-License-Identifier: MIT
 *
 * rapt and the peaks for other languages: flat functions of a shared library, which Python calls with ctypes. Times are
 * taken in C, so that the caller costs nothing. For use by one thread. */
#ifndef RAPT_BENCHMARKS_CALL_H
#define RAPT_BENCHMARKS_CALL_H

#include <stddef.h>
#include <stdint.h>

struct call;

/* library.py has the same struct. Arrays are [batch, heads, tokens, dim], and the last query is at the last key; query
 * and out are float32, in order 2 of the type of keys and values. With page_tokens keys and values are [page, head,
 * token in the page, dim] instead, and pages lists the pages of one sequence after the other. A row of int8 ends with
 * its scale, a float32. */
struct call_shape {
    int32_t isa, threads;
    int32_t key_value; /* rapt_dtype */
    int32_t causal;
    int32_t numerics; /* rapt_numerics */
    int32_t reserved_zero;
    int64_t batch, query_heads, kv_heads, query_length, kv_length, head_dim;
    int64_t value_dim; /* less than head_dim: the value is the first part of the key, in its memory */
    int64_t window;    /* how many keys a query sees up to its own; 0 = no window */
    int64_t page_tokens;
    const int32_t *pages;
};

/* Plans attention. If rapt refuses, returns NULL and says why. */
struct call *call_new(const struct call_shape *shape, const void *query, const void *key, const void *value,
                      void *out, char *why, size_t why_bytes);
void call_free(struct call *call);

/* The rapt_isa that it runs on. */
int call_isa(const struct call *call);

/* Runs calls[first], calls[first + 1] ... cyclically modulo count, and puts each time into seconds. Returns a
 * rapt_status other than RAPT_OK, if any. */
int call_run(struct call *const *calls, int64_t first, int64_t count, int64_t times, double *seconds);

/* Random numbers, far more than caches hold; NULL if memory is short. */
void *call_memory(size_t *bytes);

/* The peaks: put each time into seconds, and return the operations or bytes of one run; 0 if no loop is known for isa
 * or so many threads. Stream reads an eighth of call_memory's data, then the next. */
double call_fma(int isa, int threads, int64_t times, double *seconds);
double call_stream(int isa, int threads, int64_t eighth, int64_t times, double *seconds);

#endif
