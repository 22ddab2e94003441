/* SPDX-License-Identifier: MIT
 * `rapt bench`: how close rapt gets to this machine's peaks, on four kinds of attention. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"
#include "measure.h"
#include "memory.h"
#include "peaks.h"
#include "verbs.h"
#include "workload.h"

enum { DIM = 128, PROMPT = 2048, CACHE = 32768, CACHE_HEADS = 8, MIN_ROUNDS = 5, NAME_BYTES = 48 };

struct bench_options {
    const char *filter;
    struct option_integer threads, head_dim, keys;
    struct option_number seconds;
    bool json;
};

#define AT(field) offsetof(struct bench_options, field)

const struct option_row bench_option_rows[] = {
    {OPTION_HEADING, "What", NULL, "Two kinds of prefill and two of decode; ./dev bench has more.", 0},
    {OPTION_TEXT, "filter", "TEXT", "Only rows whose name contains TEXT, such as \"decode\".", AT(filter)},
    {OPTION_INTEGER, "head-dim", "N", "Elements of a head, 1 ... 1024; default 128.", AT(head_dim)},
    {OPTION_INTEGER, "keys", "N", "Keys of every row; default 2048 for prefill, 32768 for decode.", AT(keys)},

    {OPTION_HEADING, "Running", NULL, "Each row is measured in turns with its peak.", 0},
    {OPTION_INTEGER, "threads", "N", "At most N threads; default as OpenMP decides.", AT(threads)},
    {OPTION_NUMBER, "seconds", "X", "Least time for each row; default 2.", AT(seconds)},
    {OPTION_FLAG, "json", NULL, "Print the results as JSON.", AT(json)},
    {OPTION_HEADING, NULL, NULL, NULL, 0},
};

static const struct bench_row {
    bool decode; /* limited by the stream-read peak, else by the FMA peak */
    int64_t group;
    enum workload_feature feature;
} rows[] = {
    {false, 1, FEATURE_NONE}, {false, 1, FEATURE_CAUSAL}, {true, 1, FEATURE_NONE}, {true, 4, FEATURE_NONE}};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Static: samples are many. */
static struct bench {
    rapt_isa isa;
    int threads;
    double seconds;
    int64_t head_dim, keys; /* keys: 0 = as usual */
    bool json;
    struct arena arena;
    size_t cursor;
    struct workload workload;
    struct contender subject;
    struct fma_peak fma_peak;
    struct stream_peak stream_peak;
} bench;

/* Shows progress on a terminal; "" erases it. */
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

static int64_t keys_of(const struct bench_row *row) {
    return bench.keys ? bench.keys : row->decode ? CACHE : PROMPT;
}

static const char *name_of(const struct bench_row *row, char name[NAME_BYTES]) {
    const long long keys = keys_of(row);
    if (row->decode)
        snprintf(name, NAME_BYTES, "decode on %lld keys, group %lld", keys, (long long)row->group);
    else
        snprintf(name, NAME_BYTES, "prefill of %lld tokens, %s", keys,
                 row->feature == FEATURE_CAUSAL ? "causal" : "full");
    return name;
}

static void start(const struct bench_options *options) {
    bench.isa = option_isa_chosen();
    if (peak_is_of_unit(bench.isa)) bench.isa = RAPT_ISA_AVX512; /* float32 uses its kernels */
    if (!peak_known(bench.isa))
        tool_die("the %s kernels have no peak to be measured against", rapt_isa_name(bench.isa));
    const int most = rapt_openmp_threads(); /* 0 without OpenMP */
    bench.threads = peak_threads();
    if (options->threads.given && most != 0)
        bench.threads = options->threads.value < most ? (int)options->threads.value : most;
    bench.seconds = options->seconds.given ? (double)options->seconds.value : 2;
    bench.head_dim = options->head_dim.given ? options->head_dim.value : DIM;
    bench.keys = options->keys.value;
    bench.json = options->json;
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
    const double fma_rate = fma_peak_rate(&bench.fma_peak), read_rate = stream_peak_rate(&bench.stream_peak);
    if (bench.json) {
        json_text("kernels", rapt_isa_name(bench.isa));
        json_integer("threads", bench.threads);
        json_integer("head_dim", bench.head_dim);
        json_number("fma_peak_gflops", fma_rate * 1e-9);
        json_number("read_peak_gbytes", read_rate * 1e-9);
        json_open("rows", '[');
        return;
    }
    printf("kernels     %s, %d thread%s\n", rapt_isa_name(bench.isa), bench.threads,
           bench.threads == 1 ? "" : "s");
    printf("FMA peak    %.4g GFLOP/s: multiply-adds on registers\n", fma_rate * 1e-9);
    printf("read peak   %.4g GB/s: adding up %zu MiB of memory\n\n", read_rate * 1e-9, bench.arena.bytes >> 20);
    printf("float32, head dim %-17lld %8s %8s %15s %8s\n", (long long)bench.head_dim, "best ms", "median", "rate",
           "of peak");
}

static void load(const struct bench_row *row) {
    char name[NAME_BYTES];
    int64_t heads = row->decode ? CACHE_HEADS : 2 * bench.threads; /* enough tasks for all threads */
    struct workload_shape shape = {.batch = 1,
                                   .query_heads = heads * row->group,
                                   .kv_heads = heads,
                                   .query_length = row->decode ? 1 : keys_of(row),
                                   .kv_length = keys_of(row),
                                   .head_dim = bench.head_dim,
                                   .value_dim = bench.head_dim,
                                   .kv_dtype = RAPT_F32,
                                   .feature = row->feature};
    rapt_message why = {""};
    if (!workload_init(&bench.workload, &shape, bench.isa, bench.threads, &bench.arena,
                       row->decode ? &bench.cursor : NULL, &why))
        tool_die("%s: %s", name_of(row, name), why.text);
}

static void prepare(const struct bench_row *row) {
    load(row);
    bench.cursor = 0;
    bench.subject = (struct contender){.run = workload_run, .context = &bench.workload, .calls_per_round = 1};
    fma_peak_init(&bench.fma_peak, bench.isa, bench.threads);
    stream_peak_init(&bench.stream_peak, &bench.arena, bench.workload.region_bytes, &bench.cursor,
                     bench.threads);
}

static void print_numbers(const struct bench_row *row, double rate, double share) {
    char name[NAME_BYTES];
    const struct contender *subject = &bench.subject;
    name_of(row, name);
    if (!bench.json) {
        printf("  %-32s %8.3f %8.3f %7.4g %-7s %6.0f %%\n", name, subject->best_seconds * 1e3,
               subject->median_seconds * 1e3, rate * 1e-9, row->decode ? "GB/s" : "GFLOP/s", 100 * share);
        return;
    }
    json_open(NULL, '{');
    json_text("name", name);
    json_number("best_milliseconds", subject->best_seconds * 1e3);
    json_number("median_milliseconds", subject->median_seconds * 1e3);
    json_number(row->decode ? "gbytes_per_second" : "gflops", rate * 1e-9);
    json_number("of_peak", share);
    json_close();
}

static void print_row(const struct bench_row *row) {
    struct contender *peak = row->decode ? &bench.stream_peak.contender : &bench.fma_peak.contender;
    prepare(row);
    measure((struct contender *[]){&bench.subject, peak}, 2, bench.seconds, MIN_ROUNDS);
    double work = row->decode ? bench.workload.bytes : bench.workload.flops;
    double rate = work / bench.subject.best_seconds;
    if (row->decode)
        stream_peak_rate(&bench.stream_peak);
    else
        fma_peak_rate(&bench.fma_peak);
    double peak_rate = peak_history(row->decode ? RAPT_ISA_AUTO : bench.isa, bench.threads).highest;
    progress("%s", "");
    print_numbers(row, rate, rate / peak_rate);
    workload_free(&bench.workload);
}

/* Whether the ratios are reliable. */
static void print_drift(void) {
    struct peak_range fma = peak_history(bench.isa, bench.threads);
    struct peak_range stream = peak_history(RAPT_ISA_AUTO, bench.threads);
    double drift = peak_drift(fma, fma.lowest), of_stream = peak_drift(stream, stream.lowest);
    if (of_stream > drift) drift = of_stream;
    if (drift > tolerated_peak_drift)
        tool_warn("a peak drifted by %.0f %% meanwhile: other work shares the machine", 100 * drift);
}

static bool matches(const struct bench_row *row, const char *filter) {
    char name[NAME_BYTES];
    return !filter || strstr(name_of(row, name), filter);
}

/* Checks memory for each row before printing. */
static void check_rows(const char *filter) {
    for (int i = 0; i < ROWS; i++) {
        if (!matches(&rows[i], filter)) continue;
        load(&rows[i]);
        workload_free(&bench.workload);
    }
}

static struct bench_options parse(int argc, char **argv) {
    struct bench_options options = {0};
    options_parse(argv[0], bench_option_rows, &options, argc, argv);
    option_at_least_one("threads", options.threads, PEAK_MAX_THREADS);
    option_at_least_one("head-dim", options.head_dim, 1024);
    option_at_least_one("keys", options.keys, 1 << 20);
    if (options.seconds.given && !(options.seconds.value >= 0 && options.seconds.value <= 3600))
        tool_die("--seconds: %g is outside 0 ... 3600", (double)options.seconds.value);
    int matching = 0;
    bench.keys = options.keys.value;
    for (int i = 0; i < ROWS; i++) matching += matches(&rows[i], options.filter);
    if (matching == 0) tool_die("--filter: no row's name contains '%s'", options.filter);
    return options;
}

int verb_bench(int argc, char **argv) {
    struct bench_options options = parse(argc, argv);
    char name[NAME_BYTES];
    start(&options);
    check_rows(options.filter);
    if (bench.json) json_open(NULL, '{');
    print_peaks();
    for (int i = 0; i < ROWS; i++) {
        if (!matches(&rows[i], options.filter)) continue;
        progress("%s", name_of(&rows[i], name));
        print_row(&rows[i]);
    }
    if (bench.json) {
        json_close();
        json_close();
    }
    print_drift();
    arena_free(&bench.arena);
    return EXIT_SUCCESS;
}
