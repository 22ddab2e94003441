# SPDX-License-Identifier: MIT
"""rapt over many sizes, each in turns with the peaks: what ./dev bench figures draws, once recorded."""
import argparse
import os
import sys

import checks
import report
from cases import Case, Cursor, Problem
from library import FmaPeak, Library, Rapt, StreamPeak
from turns import measure

LENGTHS = [64, 100, 128, 200, 256, 400, 512, 1024, 2048, 4096, 8192, 16384]
KV_LENGTHS = [64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]
COUNTS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32]
ROWS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 56, 64]
LEAST_SAMPLES = 9


def prefill(length, head_dim, heads, **more):
    return Case("prefill", head_dim, length, length, heads, **more)


def lengths():
    """Small ones have more heads, so that a run takes some milliseconds."""
    for head_dim in (64, 128, 256):
        for causal in (False, True):
            for length in LENGTHS:
                yield prefill(length, head_dim, max(1, min(32, 4096 // length)), causal=causal)


def head_dims():
    for causal in (False, True):
        for head_dim in range(16, 257, 8):
            yield prefill(2048, head_dim, 2, causal=causal)


def kv_lengths():
    for group in (1, 2, 4, 8, 16):
        for length in KV_LENGTHS:
            yield Case("decode", 128, 1, length, 8, group)


def queries():
    for group in (1, 4, 8):
        for count in COUNTS:
            yield Case("extend", 128, count, 8192, 8, group)


def rows():
    """A row is one query of one head of a KV head's group."""
    for group in (1, 4, 8):
        for count in ROWS:
            if count % group == 0:
                yield Case("decode" if count == group else "extend", 128, count // group, 8192, 8, group)


def windows():
    for head_dim in (64, 128):
        for window in (64, 100, 128, 200, 256, 512, 1024, 2048, 4096, 8192):
            yield prefill(8192, head_dim, 1, causal=True, window=window)


def threads():
    yield prefill(4096, 128, 2)
    yield prefill(4096, 128, 2, causal=True)
    yield prefill(128, 64, 4, batch=64, causal=True)
    yield Case("decode", 128, 1, 32768, 8, 1)
    yield Case("decode", 128, 1, 65536, 1, 8)


# Which are measured on every instruction set, not just the best.
SWEEPS = [(lengths, True), (head_dims, True), (kv_lengths, True), (queries, False), (rows, True),
          (windows, False)]


def thread_counts():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return sorted({cores} | {2 ** i for i in range(1, 10) if 2 ** i < cores}) if cores > 1 else []


class Sweeper:
    def __init__(self, library, seconds):
        self.library, self.seconds = library, seconds
        self.rows = []
        self.fma_rates = {}
        peak = StreamPeak(library, library.isas()[0], 1, Cursor(library.memory.nbytes))
        self.stream_rate = peak.rate(measure([peak], 0.5, 8)[0])

    def fma_rate(self, isa):
        if isa not in self.fma_rates:
            peak = FmaPeak(self.library, isa, 1)
            self.fma_rates[isa] = peak.rate(measure([peak], 0.1, 5)[0])
        return self.fma_rates[isa]

    def add(self, sweep, case, isa):
        expected = case.flops / self.fma_rate(isa)
        if expected > 2 * self.seconds or case.region_bytes > self.library.memory.nbytes:
            return
        problem = Problem(case, self.library.memory)
        peaks = [FmaPeak(self.library, isa, 1)]
        if case.kind != "prefill":
            peaks.append(StreamPeak(self.library, isa, 1, problem.cursor))
        rounds = LEAST_SAMPLES if expected < 0.1 else 3
        times, *peak_times = measure([Rapt(self.library, problem, isa, 1), *peaks], self.seconds, rounds)
        rates = [peak.rate(taken) for peak, taken in zip(peaks, peak_times)]
        self.keep(sweep, case, isa, 1, times, rates[0], rates[1] if len(rates) > 1 else self.stream_rate)

    def keep(self, sweep, case, isa, thread_count, times, fma_rate, stream_rate, **more):
        isa_name = self.library.isa_name(isa)
        self.rows.append(report.row(case.name(f"isa:{isa_name}/t{thread_count}"), case, times, fma_rate,
                                    stream_rate, sweep=sweep, isa=isa_name, rapt_threads=thread_count))

    def add_threads(self, case, isa):
        """All numbers of threads in turns."""
        problem = Problem(case, self.library.memory)
        counts = [1, *thread_counts()]
        every = measure([Rapt(self.library, problem, isa, count) for count in counts], 5 * self.seconds, 5,
                        threads=counts[-1])
        for count, times in zip(counts, every):
            self.keep("threads", case, isa, count, times, None, None)
            self.rows[-1]["speedup_median"] = every[0].median / times.median


def show(name):
    """On a terminal: where it is."""
    if sys.stderr.isatty():
        print(f"\r{name:60}", end="", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench sweep", description=__doc__)
    parser.add_argument("--library", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", required=True, type=checks.file_to_write, help="where the rows go")
    parser.add_argument("--only", choices=[*(sweep.__name__ for sweep, _ in SWEEPS), "threads"], help="one sweep")
    parser.add_argument("--seconds", type=checks.seconds, default=0.35,
                        help="for each point, at least, default 0.35; points that need twice that for a run are left out")
    arguments = parser.parse_args()
    library = Library(arguments.library)
    sweeper = Sweeper(library, arguments.seconds)
    for sweep, on_every_isa in SWEEPS:
        if arguments.only in (None, sweep.__name__):
            for isa in library.isas() if on_every_isa else library.isas()[:1]:
                for case in sweep():
                    show(case.name(library.isa_name(isa)))
                    sweeper.add(sweep.__name__, case, isa)
    if arguments.only in (None, "threads"):
        for case in threads():
            show(case.name("threads"))
            sweeper.add_threads(case, library.isas()[0])
    show("")
    report.write(arguments.json, sweeper.rows, {
        "rapt": library.version, "stream_gbps": sweeper.stream_rate * 1e-9,
        "fma_gflops": {library.isa_name(isa): rate * 1e-9 for isa, rate in sweeper.fma_rates.items()}})


if __name__ == "__main__":
    main()
