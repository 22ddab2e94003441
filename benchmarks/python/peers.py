# SPDX-License-Identifier: MIT
"""rapt beside other frameworks, in turns, in one process.

A peer has several ways to say the same; each is tried and its fastest counts. "folded" has the query heads of a
group as further query rows, which no framework does for its users. With --types keys and values are stored as runtimes
store them: in fewer bits, in pages. Bytes are then those of the stored numbers."""
import argparse
import importlib
import re
import sys
import time

import checks
import report
import store
from caches import Memories
from cases import Case, Problem
from library import FmaPeak, Library, Rapt, StreamPeak
from truth import error_of, truth
from turns import measure

PEERS = [("peer_pytorch", "PyTorch"), ("peer_onnxruntime", "OnnxRuntime"), ("peer_openvino", "OpenVino")]
TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "f8_e4m3", "f8_e5m2", "i8")
TYPES_IN_PAGES = ("f32", "f16", "bf16", "f8_e4m3", "q8_0")
PEERS_OF_TYPES = [*PEERS, ("peer_ggml", "Ggml"), ("peer_vllm", "Vllm"), ("peer_vllm", "SglangKernels")]
# Errors against double on the stored numbers, as shares of a row's length; ways with larger ones are not counted.
# rapt's are below 1e-6. Peers round weights and results to bfloat16: 0.3 %; to float16: 0.03 %. Without 16 of 32768
# keys a result is off by 2 %.
TOLERATED_ERROR, TOLERATED_ERROR_F32 = 0.01, 1e-4


def cases(quick):
    for head_dim in (128,) if quick else (64, 128):
        for length, heads in ((512, 8), (2048, 2), (8192, 1)):
            for causal in (False, True):
                yield Case("prefill", head_dim, length, length, heads, causal=causal)
    for group in (1, 4) if quick else (1, 4, 8):
        yield Case("decode", 128, 1, 32768, 8, group)
    yield Case("extend", 128, 16, 8192, 8, 4)


def cases_of_types(quick):
    """By type, so that the memory of one is filled once."""
    for dtype in ("f16", "bf16", "q8_0", "q4_0", "f8_e4m3", "i8") if quick else TYPES:
        for group in (1, 4) if quick else (1, 4, 8):
            yield Case("decode", 128, 1, 32768, 8, group, dtype=dtype)
        for page in () if dtype not in TYPES_IN_PAGES else (16,) if quick else (16, 32, 128):
            for group in (4,) if quick or page == 32 else (1, 4, 8):
                yield Case("decode", 128, 1, 32768, 8, group, dtype=dtype, page_tokens=page)
        if not quick:
            yield Case("prefill", 128, 2048, 2048, 2, dtype=dtype)
    for heads in (16,) if quick else (16, 128):
        yield Case("mla", 576, 1, 32768, 1, heads, dtype="bf16", value_part=512)


def cases_of_units(quick):
    """Query, key, value and result of 16 bits, for rapt's order 2 and the peers' matrix products."""
    for dtype in ("bf16",) if quick else ("bf16", "f16"):
        for head_dim in (128,) if quick else (128, 64):
            for length, heads in ((512, 8), (2048, 2)) if quick else ((512, 8), (2048, 2), (8192, 1)):
                for causal in (False, True):
                    yield Case("prefill", head_dim, length, length, heads, causal=causal, dtype=dtype, numerics=2)
        for group in (1, 4) if quick else (1, 4, 8):
            yield Case("decode", 128, 1, 32768, 8, group, dtype=dtype, numerics=2)


class Contender:
    """A peer's way to compute a problem."""

    def __init__(self, label, way, problem, attention):
        self.label, self.way, self.problem, self.attention = label, way, problem, attention

    def sample(self, times):
        seconds = []
        for _ in range(times):
            cache = self.problem.take(1)
            begin = time.perf_counter()
            self.attention.run(cache)
            seconds.append(time.perf_counter() - begin)
        return seconds


def load_peers(modules, threads):
    peers = []
    for module, name in modules:
        try:
            peers.append(getattr(importlib.import_module(module), name)(threads))
        except (ImportError, AttributeError, OSError, RuntimeError) as error:
            print(f"{name} is missing: {str(error).splitlines()[0]}")
    return peers


def tolerated(peer, dtype):
    """A peer says where it rounds more than its type does."""
    return getattr(peer, "errors", {}).get(dtype, TOLERATED_ERROR if dtype != "f32" else TOLERATED_ERROR_F32)


def fastest_way(peer, label, problem, expected, complaints):
    """Of those that are right."""
    best = None
    try:
        for way, attention in peer.ways(problem):
            error = error_of(attention.result(), expected)
            contender = Contender(label, f"{way}, error {100 * error:.2g} %", problem, attention)
            seconds = min(contender.sample(3))
            if not error <= tolerated(peer, problem.case.dtype):
                complaints.append(f"{label} {contender.way}: not counted ({1e3 * seconds:.1f} ms)")
                continue
            if best is None or seconds < best[0]:
                best = (seconds, contender)
    except Exception as error:  # a framework's refusal has any type; the others go on
        complaints.append(f"{label} fails: {str(error).splitlines()[0][:150]}")
    return [best[1]] if best else []


def contenders_of(peers, problem, expected, complaints):
    found = []
    for peer in peers:
        found += fastest_way(peer, peer.name, problem, expected, complaints)
        if peer.folds and problem.case.group > 1 and not problem.case.causal:
            found += fastest_way(peer, peer.name + "-folded", problem.folded(), expected, complaints)
    return found


def measure_case(case, library, memories, peers, arguments):
    """Returns rapt's row and those of the peers."""
    isa, threads = library.chosen_isa(), arguments.threads  # in order 2 what that becomes, with the matrix unit
    problem, complaints = Problem(case, memories.of(case.dtype)), []
    try:
        rapt = Rapt(library, problem, 0 if case.numerics else isa, threads)
    except ValueError as error:
        return [], [f"{case.name(f't{threads}')}: rapt refuses: {error}"]
    expected = truth(problem)
    error = error_of(rapt.result(), expected)
    if not error <= (TOLERATED_ERROR if case.numerics else TOLERATED_ERROR_F32):
        return [], [f"{case.name(f't{threads}')}: rapt's error is {100 * error:.2g} %"]
    if arguments.types and case.dtype == "f32" and not case.page_tokens:
        peers = []  # the other recording has them
    others = contenders_of(peers, problem, expected, complaints)
    peaks = [FmaPeak(library, rapt.isa, threads), StreamPeak(library, isa, threads, problem.cursor)]
    rapt_times, fma, stream, *others_times = measure([rapt, *peaks, *others], *arguments.effort, threads)
    rates = [peak.rate(times) for peak, times in zip(peaks, (fma, stream))]
    rows = [report.row(case.name(f"isa:{library.isa_name(rapt.isa)}/t{threads}"), case, rapt_times, *rates)]
    for other, times in zip(others, others_times):
        rows.append(report.row(f"peer:{other.label}/{case.name(f't{threads}')}", case, times, *rates, label=other.way,
                               rapt_speedup=times.best / rapt_times.best,
                               rapt_speedup_median=times.median / rapt_times.median))
    return rows, complaints


def print_row(row, streams):
    limit = "stream" if streams else "peak"
    print(f"{row['name']:60}{row['real_time']:9.2f}{row['median_ms']:9.2f}", end="")
    print(f"{row['gbps']:8.2f}" if streams else f"{row['gflops']:8.1f}", end="")
    for key in ("of_" + limit, "of_" + limit + "_median"):
        print(f"{100 * row[key]:9.1f}%" if key in row else 10 * " ", end="")
    for key in ("rapt_speedup", "rapt_speedup_median"):
        print(f"{row[key]:8.2f}x" if key in row else "", end="")
    print(" ", row.get("label", ""), flush=True)


def pattern(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"no regular expression: {error}") from None


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=checks.file_to_write, help="write the rows to this file, too")
    parser.add_argument("--quick", action="store_true", help="fewer rows in under a minute, less steady")
    parser.add_argument("--types", action="store_true", help="keys and values of other types, and in pages")
    parser.add_argument("--units", action="store_true", help="bfloat16 and float16 throughout, rapt in order 2")
    parser.add_argument("--store", action="store_true", help="keep the medians in benchmarks/results, for --types "
                                                             "and --units")
    parser.add_argument("--filter", default="", type=pattern, help="with a regular expression: rows of this name only")
    parser.add_argument("--seconds", type=checks.seconds, default=5, help="for each case, at least; default 5")
    parser.add_argument("--threads", type=checks.at_least_one, default=1)
    arguments = parser.parse_args()
    if arguments.types and arguments.units:
        parser.error("--types and --units are two runs")
    if arguments.store and not (arguments.types or arguments.units):
        parser.error("--store goes with --types and --units; ./dev bench record stores the others")
    arguments.effort = (0.8, 3) if arguments.quick else (arguments.seconds, 7)  # seconds and rounds of a case, at least
    return arguments


def main():
    arguments = parse()
    library = Library(arguments.library)
    peers = load_peers(PEERS_OF_TYPES if arguments.types or arguments.units else PEERS, arguments.threads)
    versions = ", ".join(f"{peer.name} {peer.version}" for peer in peers)
    print(f"rapt {library.version} beside {versions or 'nobody'}; {arguments.threads} threads each\n")
    print(f"{'row':60}{'best ms':>9}{'median':>9}{'G/s':>8}{'of limit':>10}{'(median)':>10}"
          f"{'rapt is':>9}{'(median)':>9}")
    rows, met, memories = [], False, Memories(library.memory)
    kind = cases_of_types if arguments.types else cases_of_units if arguments.units else cases
    for case in kind(arguments.quick):
        if not arguments.filter.search(case.name(f"t{arguments.threads}")):
            continue
        met = True
        measured, complaints = measure_case(case, library, memories, peers, arguments)
        for row in measured:
            print_row(row, case.streams)
        for complaint in complaints:
            print("  " + complaint)
        rows += measured
    if not met:
        sys.exit("peers: no row has such a name")
    print("\nG/s: GFLOPS, and of the FMA peak; decode: GB/s, and of the stream-read peak. rapt is: times as fast.")
    if arguments.store:
        store.store(rows, {"rapt": library.version, "peers": versions}, library.isa_name(library.isas()[0]))
    if arguments.json:
        report.write(arguments.json, rows, {"rapt": library.version, "peers": versions})


if __name__ == "__main__":
    main()
