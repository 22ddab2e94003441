/* SPDX-License-Identifier: MIT */
#include "peaks.h"

#include "peak_kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static const struct peak_kernels *const kernels_of[RAPT_ISA_COUNT] = {
#if defined(__x86_64__)
    [RAPT_ISA_AVX2] = &peak_avx2,
    [RAPT_ISA_AVX512] = &peak_avx512,
    [RAPT_ISA_AMX] = &peak_amx,
    [RAPT_ISA_AVX512_BF16] = &peak_avx512_bf16,
#elif defined(__aarch64__)
    [RAPT_ISA_NEON] = &peak_neon,
#endif
    [RAPT_ISA_AUTO] = NULL,
};

static struct peak_range history[RAPT_ISA_COUNT][PEAK_MAX_THREADS + 1];

/* Keeps the results of loops alive. */
static volatile float fma_sink[PEAK_MAX_THREADS];
static volatile uint64_t read_sink[PEAK_MAX_THREADS];

static int64_t fma_rounds[RAPT_ISA_COUNT];

struct stream_way {
    const struct peak_kernels *kernels;
    size_t prefetch_bytes;
    int runs;
};

/* The fastest of those tried, in turns: which one wins varies with the load of other programs. */
enum { STREAM_MAX_WAYS = 16, STREAM_WAYS = 4 };
static struct stream_way ways[STREAM_WAYS];

bool peak_known(rapt_isa isa) {
    return kernels_of[isa] != NULL && rapt_isa_available(isa);
}

bool peak_is_of_unit(rapt_isa isa) { return kernels_of[isa] && !kernels_of[isa]->read; }

bool peak_unit_takes_f16(void) {
    char features[512];
    rapt_cpu_features(features, sizeof features);
    return strstr(features, "amx_fp16") != NULL;
}

int peak_threads(void) {
#ifdef _OPENMP
    int threads = omp_get_num_procs() < rapt_openmp_threads() ? omp_get_num_procs() : rapt_openmp_threads();
    return threads < 1 ? 1 : threads < PEAK_MAX_THREADS ? threads : PEAK_MAX_THREADS;
#else
    return 1;
#endif
}

int peak_more_threads(int threads) {
    const int all = peak_threads();
    return threads >= all ? 0 : 2 * threads < all ? 2 * threads : all;
}

static void run_fma(void *context) {
    const struct fma_peak *peak = context;
    const struct peak_kernels *kernels = kernels_of[peak->isa];
#ifdef _OPENMP
#pragma omp parallel for num_threads(peak->threads) schedule(static, 1)
#endif
    for (int thread = 0; thread < peak->threads; thread++)
        fma_sink[thread] = kernels->fma(fma_rounds[peak->isa]);
}

/* Rounds of about a millisecond: 0.7 to 2 ms for 5 GHz to 1500 MHz. */
static void choose_fma_rounds(rapt_isa isa) {
    const struct peak_kernels *kernels = kernels_of[isa];
    int64_t rounds = 10000;
    double seconds = 1;
    for (int attempt = 0; attempt < 5; attempt++) {
        double begin = now_seconds();
        fma_sink[0] = kernels->fma(rounds);
        double taken = now_seconds() - begin;
        seconds = taken < seconds ? taken : seconds;
    }
    fma_rounds[isa] = (int64_t)((double)rounds * 1e-3 / seconds) + 1;
}

void fma_peak_init(struct fma_peak *peak, rapt_isa isa, int threads) {
    if (fma_rounds[isa] == 0)
        choose_fma_rounds(isa);
    peak->isa = isa;
    peak->threads = threads;
    peak->flops = kernels_of[isa]->flops_per_round * (double)fma_rounds[isa] * threads;
    peak->contender = (struct contender){.run = run_fma, .context = peak, .calls_per_round = 4};
}

static void run_stream(void *context) {
    struct stream_peak *peak = context;
    const struct stream_way *way = peak->only_way ? peak->only_way : &ways[peak->calls++ % STREAM_WAYS];
    const char *region = peak->arena->base + *peak->cursor * peak->region_bytes;
    const size_t part_bytes = peak->bytes / (size_t)peak->threads;
#ifdef _OPENMP
#pragma omp parallel for num_threads(peak->threads) schedule(static, 1)
#endif
    for (int thread = 0; thread < peak->threads; thread++)
        read_sink[thread] = way->kernels->read(region + (size_t)thread * part_bytes, part_bytes,
                                               way->prefetch_bytes, way->runs);
    *peak->cursor = (*peak->cursor + 1) % arena_regions(peak->arena, peak->region_bytes);
}

void stream_peak_init(struct stream_peak *peak, const struct arena *arena, size_t region_bytes,
                      size_t *cursor, int threads) {
    *peak = (struct stream_peak){
        .threads = threads, .arena = arena, .region_bytes = region_bytes, .cursor = cursor};
    peak->bytes = region_bytes / PEAK_READ_STEP / (size_t)threads * PEAK_READ_STEP * (size_t)threads;
    peak->contender = (struct contender){.run = run_stream, .context = peak, .calls_per_round = 1};
}

void stream_choose(const struct arena *arena, rapt_isa isa, char *text, size_t text_bytes) {
    static const size_t distances[] = {0, 1024, 4096, 8192};
    static struct stream_peak peaks[STREAM_MAX_WAYS];
    struct contender *contenders[STREAM_MAX_WAYS];
    struct stream_way all[STREAM_MAX_WAYS];
    size_t cursor = 0;
    int count = 0;
    for (int runs = 1; runs <= 8; runs *= 2)
        for (size_t d = 0; d < sizeof distances / sizeof distances[0]; d++, count++) {
            stream_peak_init(&peaks[count], arena, arena->bytes / 8, &cursor, 1);
            all[count] = (struct stream_way){kernels_of[isa], distances[d], runs};
            peaks[count].only_way = &all[count];
            contenders[count] = &peaks[count].contender;
        }
    measure(contenders, count, 0, 8);
    for (int place = 0; place < STREAM_WAYS; place++) {
        int best = 0;
        for (int i = 1; i < count; i++)
            best = contenders[i]->best_seconds < contenders[best]->best_seconds ? i : best;
        ways[place] = all[best];
        contenders[best]->best_seconds = HUGE_VAL;
    }
    snprintf(text, text_bytes,
             "best of %d of %d ways, first %d runs side by side with software prefetch %zu bytes ahead",
             STREAM_WAYS, count, ways[0].runs, ways[0].prefetch_bytes);
}

static double note(rapt_isa isa, int threads, double rate) {
    struct peak_range *range = &history[isa][threads];
    range->latest = rate;
    if (rate > range->highest)
        range->highest = rate;
    if (range->lowest == 0 || rate < range->lowest)
        range->lowest = rate;
    for (int fewer = 1; fewer < threads; fewer++)
        rate = history[isa][fewer].highest > rate ? history[isa][fewer].highest : rate;
    return rate;
}

double fma_peak_rate(const struct fma_peak *peak) {
    return note(peak->isa, peak->threads, peak->flops / peak->contender.best_seconds);
}

double stream_peak_rate(const struct stream_peak *peak) {
    return note(RAPT_ISA_AUTO, peak->threads, (double)peak->bytes / peak->contender.best_seconds);
}

struct peak_range peak_history(rapt_isa isa, int threads) {
    return history[isa][threads];
}

double peak_drift(struct peak_range range, double rate) {
    return range.highest > 0 ? 1 - rate / range.highest : 0;
}
