/* SPDX-License-Identifier: MIT
 *
 * rapt_bench: what rapt reaches of what this machine can do. */
#include "arguments.h"
#include "harness.h"
#include "machine.h"
#include "peaks.h"
#include "peer.h"
#include "rows.h"

#include <stdarg.h>
#include <stdio.h>

static const char by_arithmetic[] = "prefill extend ragged layer matmul mixed paged peer:openblas",
                  by_memory[] = "decode extend many matmul mixed paged";

static const struct bench_column columns[] = {
    {"median_ms", "median", "", 1, 3, NULL},
    {"spread", "spread", "%", 100, 1, NULL},
    {"gflops", "gflops", "", 1, 1, by_arithmetic},
    {"of_peak_median", "of_peak", "%", 100, 1, by_arithmetic},
    {"of_peak", "(best)", "%", 100, 1, by_arithmetic},
    {"gbps", "gbps", "", 1, 2, by_memory},
    {"of_stream_median", "of_stream", "%", 100, 1, by_memory},
    {"of_stream", "(best)", "%", 100, 1, by_memory},
    {"of_limit_median", "of_limit", "%", 100, 1, "extend mixed"},
    {"of_copy_median", "of_copy", "%", 100, 1, "append"},
    {"cost_median", "cost", "x", 1, 3, NULL},
    {"speedup_median", "speedup", "x", 1, 2, NULL},
    {"of_contiguous_median", "of_contiguous", "%", 100, 1, NULL},
    {"of_parts_median", "of_parts", "x", 1, 3, NULL},
};

__attribute__((format(printf, 2, 3))) static void say(const char *key, const char *format, ...) {
    char text[512];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    bench_context(key, text);
}

static void describe_machine(void) {
    char text[512];
    machine_line(text, sizeof text);
    say("processor", "%s", text);
    rapt_cpu_features(text, sizeof text);
    say("cpu_features", "%s", text);
    isa_line(text, sizeof text);
    say("isa_tables", "%s", text);
    say("rapt", "%s, numerics %d, OpenMP threads %d", rapt_version(), rapt_numerics_version(),
        rapt_openmp_threads());
    say("peer", "%s",
        peer_describe() ? peer_describe() : "OpenBLAS was absent when this was built: no peer rows");
}

/* Measures every peak once before the rows, which are compared with it. */
static void first_peaks(const struct arena *arena) {
    static struct fma_peak fma;
    static struct stream_peak stream;
    struct contender *contender = &fma.contender;
    char text[128];
    size_t cursor = 0;
    rapt_isa best = RAPT_ISA_AUTO;
    for (int isa = RAPT_ISA_SCALAR; isa < RAPT_ISA_COUNT; isa++) {
        if (!peak_known(isa))
            continue;
        if (!peak_is_of_unit(isa))
            best = isa;
        for (int threads = 1; threads; threads = peak_more_threads(threads)) {
            fma_peak_init(&fma, isa, threads);
            measure(&contender, 1, threads == 1 ? 0.1 : 0.5, 1);
            snprintf(text, sizeof text, "peak_fma_%s_t%d", rapt_isa_name(isa), threads);
            say(text, "%.1f GFLOPS", fma_peak_rate(&fma) * 1e-9);
        }
    }
    if (best == RAPT_ISA_AUTO)
        return;
    stream_choose(arena, best, text, sizeof text);
    say("stream_read", "%s", text);
    contender = &stream.contender;
    for (int threads = 1; threads; threads = peak_more_threads(threads)) {
        stream_peak_init(&stream, arena, arena->bytes / 8, &cursor, threads);
        measure(&contender, 1, 0.2, 8);
        snprintf(text, sizeof text, "peak_stream_t%d", threads);
        say(text, "%.2f GB/s", stream_peak_rate(&stream) * 1e-9);
    }
}

static void warn_of_drift(void) {
    bool steady = true;
    for (int isa = RAPT_ISA_AUTO; isa < RAPT_ISA_COUNT; isa++) {
        for (int threads = 1; threads; threads = peak_more_threads(threads)) {
            struct peak_range range = peak_history(isa, threads);
            if (peak_drift(range, range.lowest) <= tolerated_peak_drift)
                continue;
            steady = false;
            printf("WARNING: the peak %s t%d drifted by %.0f %% between rows (%.1f to %.1f G/s): "
                   "other work shared the machine; compare ratios, not times\n",
                   isa == RAPT_ISA_AUTO ? "stream" : rapt_isa_name(isa), threads,
                   100 * peak_drift(range, range.lowest), range.lowest * 1e-9, range.highest * 1e-9);
        }
    }
    if (steady)
        printf("peaks: steady within %.0f %%\n", 100 * tolerated_peak_drift);
}

int main(int argc, char **argv) {
    static struct arena arena;
    arguments_parse(argc, argv);
    peer_prefer_kernels(argv);
    struct row_settings settings = {.arena = &arena, .seconds = arguments.seconds, .min_rounds = 5};
    if (rows_add(&settings, arguments_want) == 0) {
        fputs("rapt_bench: no row has such a name\n", stderr);
        return 2;
    }
    if (arguments.list)
        return 0;
    if (!arena_init(&arena)) {
        fputs("rapt_bench: no memory\n", stderr);
        return 2;
    }
    char text[128];
    describe_machine();
    arena_describe(&arena, text, sizeof text);
    say("data", "%s", text);
    first_peaks(&arena);
    int status =
        bench_run(arguments.count, arguments.values, columns, (int)(sizeof columns / sizeof columns[0]));
    if (status != 2)
        warn_of_drift();
    return status;
}
