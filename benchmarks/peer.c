/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "peer.h"

#ifndef RAPT_BENCH_OPENBLAS

const char *peer_describe(void) {
    return NULL;
}

void peer_prefer_kernels(char **argv) {
    (void)argv;
}

#else

#include "measure.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *peer_describe(void) {
    static char text[256];
    snprintf(text, sizeof text, "%s, kernels for %s", openblas_get_config(), openblas_get_corename());
    return text;
}

void peer_prefer_kernels(char **argv) {
#if defined(__x86_64__) && defined(__linux__)
    const char *better = __builtin_cpu_supports("avx512bf16") ? "Cooperlake"
                         : __builtin_cpu_supports("avx512vl") ? "SkylakeX"
                         : __builtin_cpu_supports("avx2")     ? "Haswell"
                                                              : NULL;
    if (!better || strcmp(openblas_get_corename(), "Prescott") != 0 || getenv("OPENBLAS_CORETYPE"))
        return;
    setenv("OPENBLAS_CORETYPE", better, 1);
    execv("/proc/self/exe", argv);
#else
    (void)argv;
#endif
}

/* Rows [begin, end) of a head against the keys that any of them sees. */
static void attend_rows(struct peer *peer, int64_t head, int64_t begin, int64_t end) {
    const struct workload_shape *shape = &peer->shape;
    const int64_t length = shape->kv_length, rows = end - begin;
    const bool causal = shape->feature == FEATURE_CAUSAL;
    const int64_t keys = causal ? end : length;
    const int dim = (int)shape->head_dim, ld = (int)length;
    const float *query = peer->query + (head * length + begin) * dim;
    const float *key = peer->key + head * length * dim, *value = peer->value + head * length * dim;
    float *out = peer->out + (head * length + begin) * dim;

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)keys, dim, 1 / sqrtf((float)dim),
                query, dim, key, dim, 0, peer->scores, ld);
    for (int64_t row = 0; row < rows; row++) {
        int64_t visible = causal ? begin + row + 1 : keys;
        peer->sums[row] = peer_exp_row(peer->scores + row * length, visible);
        memset(peer->scores + row * length + visible, 0, (size_t)(keys - visible) * sizeof(float));
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, dim, (int)keys, 1, peer->scores, ld,
                value, dim, 0, out, dim);
    for (int64_t row = 0; row < rows; row++)
        cblas_sscal(dim, 1 / peer->sums[row], out + row * dim, 1);
}

void peer_run(void *context) {
    struct peer *peer = context;
    const int64_t length = peer->shape.query_length, step = peer->block_rows;
    for (int64_t head = 0; head < peer->shape.query_heads; head++)
        for (int64_t begin = 0; begin < length; begin += step)
            attend_rows(peer, head, begin, begin + step < length ? begin + step : length);
}

/* From small blocks, whose scores stay in cache, to all rows at once. */
static void choose_block_rows(struct peer *peer) {
    struct contender trial = {.run = peer_run, .context = peer, .calls_per_round = 1};
    struct contender *only = &trial;
    double best_seconds = 0;
    int64_t best = 0;
    for (int64_t rows = 32; rows <= peer->shape.query_length; rows *= 2) {
        if (rows > 1024 && rows < peer->shape.query_length)
            continue;
        peer->block_rows = rows;
        measure(&only, 1, 0, peer->shape.query_length > 2048 ? 1 : 3);
        if (best == 0 || trial.best_seconds < best_seconds) {
            best = rows;
            best_seconds = trial.best_seconds;
        }
    }
    peer->block_rows = best;
}

void peer_init(struct peer *peer, const struct workload *workload) {
    const size_t length = (size_t)workload->shape.query_length, dim = (size_t)workload->shape.head_dim;
    openblas_set_num_threads(workload->threads);
    *peer = (struct peer){
        .shape = workload->shape, .query = workload->query, .key = workload->key, .value = workload->value};
    peer->out = buffer_new((size_t)workload->shape.query_heads * length * dim * sizeof(float));
    peer->scores = buffer_new(length * length * sizeof(float));
    peer->sums = buffer_new(length * sizeof(float));
    choose_block_rows(peer);
}

void peer_free(struct peer *peer) {
    buffer_free(peer->out);
    buffer_free(peer->scores);
    buffer_free(peer->sums);
}

double peer_difference(struct peer *peer, struct workload *workload) {
    const int64_t count = peer->shape.query_heads * peer->shape.query_length * peer->shape.head_dim;
    const float *out = workload->out;
    double largest = 0;
    peer_run(peer);
    workload_run(workload);
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)peer->out[i] - (double)out[i]);
        if (!(isnan(largest) || difference <= largest)) /* NaN stays */
            largest = difference;
    }
    return largest;
}

#endif
