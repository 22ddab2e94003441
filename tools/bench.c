/* SPDX-License-Identifier: MIT
 * `rapt bench`: what rapt reaches of what this machine can do, on four kinds of attention. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "measure.h"
#include "memory.h"
#include "options.h"
#include "peaks.h"
#include "tool.h"
#include "verbs.h"
#include "workload.h"

enum { DIM = 128, PROMPT = 2048, CACHE = 32768, CACHE_HEADS = 8, MIN_ROUNDS = 5 };

static const struct bench_row {
    const char *name;
    int64_t queries, keys, group;
    enum workload_feature feature;
    bool from_memory; /* limited by the stream-read peak, else by the FMA peak */
} rows[] = {
    {"prefill of 2048 tokens, full", PROMPT, PROMPT, 1, FEATURE_NONE, false},
    {"prefill of 2048 tokens, causal", PROMPT, PROMPT, 1, FEATURE_CAUSAL, false},
    {"decode on 32768 keys, group 1", 1, CACHE, 1, FEATURE_NONE, true},
    {"decode on 32768 keys, group 4", 1, CACHE, 4, FEATURE_NONE, true},
};

/* Static, since samples are many. */
static struct bench {
    rapt_isa isa;
    int threads;
    double seconds;
    struct arena arena;
    size_t cursor;
    struct workload workload;
    struct contender subject;
    struct fma_peak fma_peak;
    struct stream_peak stream_peak;
} bench;

/* What is going on, on a terminal; "" wipes it away. */
__attribute__((format(printf, 1, 2))) static void progress(const char *format, ...) {
    va_list arguments;
    if (!isatty(STDERR_FILENO)) return;
    fflush(stdout);
    fputs("\r\033[K", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

static void start(const struct bench_options *options) {
    rapt_status status = rapt_isa_chosen(&bench.isa);
    if (status != RAPT_OK) tool_die("%s: see `rapt info`", rapt_status_text(status));
    if (!peak_known(bench.isa))
        tool_die("the %s kernels have no peak to be measured against", rapt_isa_name(bench.isa));
    bool chosen = options->threads.given && rapt_openmp_threads() != 0;
    bench.threads = chosen ? (int)options->threads.value : peak_threads();
    bench.seconds = options->seconds.given ? (double)options->seconds.value : 2;
    progress("filling memory");
    if (!arena_init(&bench.arena)) tool_die("out of memory");
}

static void print_peaks(void) {
    struct contender *fma = &bench.fma_peak.contender, *stream = &bench.stream_peak.contender;
    progress("multiply-adds and reading memory");
    stream_choose(&bench.arena, bench.isa, NULL, 0);
    fma_peak_init(&bench.fma_peak, bench.isa, bench.threads);
    stream_peak_init(&bench.stream_peak, &bench.arena, bench.arena.bytes / 8, &bench.cursor, bench.threads);
    measure((struct contender *[]){fma, stream}, 2, bench.seconds / 4, MIN_ROUNDS);
    progress("%s", "");
    printf("kernels     %s, %d thread%s\n", rapt_isa_name(bench.isa), bench.threads,
           bench.threads == 1 ? "" : "s");
    printf("FMA peak    %.4g GFLOP/s: multiply-adds on registers\n", fma_peak_rate(&bench.fma_peak) * 1e-9);
    printf("read peak   %.4g GB/s: adding up %zu MiB of memory\n\n",
           stream_peak_rate(&bench.stream_peak) * 1e-9, bench.arena.bytes >> 20);
    printf("float32, head dim %-17d %8s %8s %15s %8s\n", DIM, "best ms", "median", "rate", "of peak");
}

static void prepare(const struct bench_row *row) {
    int64_t heads = row->from_memory ? CACHE_HEADS : 2 * bench.threads; /* enough tasks for all threads */
    struct workload_shape shape = {.batch = 1,
                                   .query_heads = heads * row->group,
                                   .kv_heads = heads,
                                   .query_length = row->queries,
                                   .kv_length = row->keys,
                                   .head_dim = DIM,
                                   .feature = row->feature};
    rapt_message why = {""};
    if (!workload_init(&bench.workload, &shape, bench.isa, bench.threads, &bench.arena,
                       row->from_memory ? &bench.cursor : NULL, &why))
        tool_die("%s: %s", row->name, why.text);
    bench.cursor = 0;
    bench.subject = (struct contender){.run = workload_run, .context = &bench.workload, .calls_per_round = 1};
    fma_peak_init(&bench.fma_peak, bench.isa, bench.threads);
    stream_peak_init(&bench.stream_peak, &bench.arena, bench.workload.region_bytes, &bench.cursor,
                     bench.threads);
}

static void print_row(const struct bench_row *row) {
    struct contender *peak = row->from_memory ? &bench.stream_peak.contender : &bench.fma_peak.contender;
    prepare(row);
    measure((struct contender *[]){&bench.subject, peak}, 2, bench.seconds, MIN_ROUNDS);
    double work = row->from_memory ? bench.workload.bytes : bench.workload.flops;
    double rate = work / bench.subject.best_seconds;
    if (row->from_memory)
        stream_peak_rate(&bench.stream_peak);
    else
        fma_peak_rate(&bench.fma_peak);
    double peak_rate = peak_history(row->from_memory ? RAPT_ISA_AUTO : bench.isa, bench.threads).highest;
    progress("%s", "");
    printf("  %-32s %8.3f %8.3f %7.4g %-7s %6.0f %%\n", row->name, bench.subject.best_seconds * 1e3,
           bench.subject.median_seconds * 1e3, rate * 1e-9, row->from_memory ? "GB/s" : "GFLOP/s",
           100 * rate / peak_rate);
    workload_free(&bench.workload);
}

/* Whether the ratios can be trusted. */
static void print_drift(void) {
    struct peak_range fma = peak_history(bench.isa, bench.threads);
    struct peak_range stream = peak_history(RAPT_ISA_AUTO, bench.threads);
    double drift = peak_drift(fma, fma.lowest), of_stream = peak_drift(stream, stream.lowest);
    if (of_stream > drift) drift = of_stream;
    if (drift > tolerated_peak_drift)
        tool_warn("a peak drifted by %.0f %% meanwhile: other work shares the machine", 100 * drift);
}

int verb_bench(int argc, char **argv) {
    struct bench_options options = bench_parse(argc, argv);
    option_at_least_one("threads", options.threads, PEAK_MAX_THREADS);
    if (options.seconds.given && !(options.seconds.value >= 0 && options.seconds.value <= 3600))
        tool_die("--seconds: %g is outside 0 ... 3600", (double)options.seconds.value);
    start(&options);
    print_peaks();
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        progress("%s", rows[i].name);
        print_row(&rows[i]);
    }
    print_drift();
    arena_free(&bench.arena);
    return EXIT_SUCCESS;
}
