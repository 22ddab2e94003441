// SPDX-License-Identifier: MIT
//
// The only C++ of this project: what harness.h needs of Google Benchmark.
#include "harness.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

struct bench_state {
    benchmark::State &state;
};

namespace {

using Runs = std::vector<benchmark::BenchmarkReporter::Run>;

std::vector<std::pair<std::string, std::string>> context_lines;
bool any_failed;

// Rows time themselves, so each runs one "iteration" in manual time. Google
// Benchmark appends that to names, which would then say nothing of the row.
Runs with_plain_names(const Runs &runs) {
    Runs plain = runs;
    for (auto &run : plain) {
        run.run_name.iterations.clear();
        run.run_name.time_type.clear();
    }
    return plain;
}

// Why a row was skipped, empty if it ran; the field changed its name in Google Benchmark 1.8.
template <class Run> auto skip_text(const Run &run, int) -> decltype(run.error_occurred, std::string()) {
    return run.error_occurred ? run.error_message : "";
}
template <class Run> auto skip_text(const Run &run, long) -> decltype(run.skip_message, std::string()) {
    return run.skip_message;
}

class JsonReporter : public benchmark::JSONReporter {
public:
    void ReportRuns(const Runs &runs) override {
        benchmark::JSONReporter::ReportRuns(with_plain_names(runs));
        GetOutputStream().flush();
    }
};

class TableReporter : public benchmark::BenchmarkReporter {
public:
    TableReporter(const bench_column *columns, int count) : columns_(columns), count_(count) {}

    bool ReportContext(const Context &context) override {
        std::printf("rapt_bench on %d CPUs at about %.0f MHz\n", context.cpu_info.num_cpus,
                    context.cpu_info.cycles_per_second * 1e-6);
        for (const auto &cache : context.cpu_info.caches)
            std::printf("L%d %s: %d KiB%s\n", cache.level, cache.type.c_str(), cache.size / 1024,
                        cache.num_sharing > 1 ? ", shared" : "");
        for (const auto &line : context_lines)
            std::printf("%s: %s\n", line.first.c_str(), line.second.c_str());
        std::printf("\n%-*s %10s", name_width, "row", "best ms");
        for (int i = 0; i < count_; i++)
            std::printf(" %*s", width(i), columns_[i].title);
        std::printf("\n");
        return true;
    }

    void ReportRuns(const Runs &runs) override {
        for (const auto &run : with_plain_names(runs))
            print(run);
        std::fflush(stdout);
    }

private:
    static constexpr int name_width = 58;

    int width(int column) const {
        size_t title = std::strlen(columns_[column].title);
        return title < 7 ? 7 : static_cast<int>(title);
    }

    void print(const Run &run) const {
        std::printf("%-*s", name_width, run.benchmark_name().c_str());
        std::string skipped = skip_text(run, 0);
        if (!skipped.empty()) {
            std::printf(" %s\n", skipped.c_str());
            return;
        }
        std::printf(" %10.3f",
                    run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit) * 1e3);
        for (int i = 0; i < count_; i++)
            print_counter(run, i);
        std::printf("%s%s\n", run.report_label.empty() ? "" : "  ", run.report_label.c_str());
    }

    static bool shown(const std::string &name, const char *rows) {
        std::string kind = " " + name.substr(0, name.find_first_of("/0123456789")) + " ";
        return !rows || (" " + std::string(rows) + " ").find(kind) != std::string::npos;
    }

    void print_counter(const Run &run, int i) const {
        auto counter = run.counters.find(columns_[i].counter);
        if (counter == run.counters.end() || !shown(run.benchmark_name(), columns_[i].rows)) {
            std::printf(" %*s", width(i), "");
            return;
        }
        char text[32];
        std::snprintf(text, sizeof text, "%.*f%s", columns_[i].decimals,
                      counter->second.value * columns_[i].factor, columns_[i].unit);
        std::printf(" %*s", width(i), text);
    }

    const bench_column *columns_;
    int count_;
};

bool wants_file(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (std::strncmp(argv[i], "--benchmark_out=", 16) == 0)
            return true;
    return false;
}

} // namespace

void bench_add(const char *name, bench_function *function, const void *argument) {
    benchmark::RegisterBenchmark(name,
                                 [function, argument](benchmark::State &state) {
                                     bench_state shim{state};
                                     for (auto _ : state)
                                         function(&shim, argument);
                                 })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
}

void bench_time(bench_state *state, double seconds) {
    state->state.SetIterationTime(seconds);
}
void bench_counter(bench_state *state, const char *name, double value) {
    state->state.counters[name] = value;
}
void bench_note(bench_state *state, const char *text) {
    state->state.SetLabel(text);
}
void bench_skip(bench_state *state, const char *why) {
    state->state.SkipWithError(why);
}
void bench_fail(bench_state *state, const char *why) {
    any_failed = true;
    state->state.SkipWithError(why);
}

void bench_context(const char *key, const char *value) {
    benchmark::AddCustomContext(key, value);
    context_lines.emplace_back(key, value);
}

int bench_run(int argc, char **argv, const bench_column *columns, int column_count) {
    TableReporter table(columns, column_count);
    JsonReporter json;
    bool file = wants_file(argc, argv);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 2;
    benchmark::RunSpecifiedBenchmarks(&table, file ? &json : nullptr);
    benchmark::Shutdown();
    return any_failed ? 1 : 0;
}
