# SPDX-License-Identifier: MIT
"""ggml's own tests and benchmarks of FLASH_ATTN_EXT, run with the backend of rapt; ./dev ggml calls it.

bars.py BIN LIBRARY [--only test|perf] [--cases REGEX] [--all]

test: all of ggml's cases. Each is taken, and then right by ggml's own measure, or declined. At least 95 % of those whose
types are among TYPES have to be taken, and none may fail.
perf: ggml's CPU backend and rapt in turns, case by case: microseconds per run and their ratio. ggml's list has cases
that take hours; without --all those that the CPU backend takes longer than some seconds for are left out.

The last line is `ggml: N taken, N declined, N failed, perf X.X x`."""
import argparse
import collections
import math
import os
import re
import subprocess
import sys

TYPES = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl"}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
CASE = re.compile(r"FLASH_ATTN_EXT\((.*?)\): (.*)")
TIMED = re.compile(r"([0-9.]+) us/run")

# What perf measures without --all: decode at any length, prefill of 512 queries to 16,384 keys, and some of 4,096.
PERF_CASES = [
    r"hsk=72,.*kv=5776,nb=5776,",
    *(rf"hsk={dim},.*kv=[0-9]+,nb=[14]," for dim in (64, 128, 256, 512, 576)),
    r"hsk=64,.*kv=7680,nb=512,",
    r"hsk=256,.*kv=(4096|10000|16384),nb=512,",
    r"hsk=(64|128),.*nr23=\[[14],1\],kv=4096,nb=4096,",
    r"hsk=(256|576),.*nr23=\[1,1\],kv=4096,nb=4096,",
]


def lines_of(arguments, mode, device, cases):
    """Runs test-backend-ops and yields (case, outcome) as they come."""
    command = [os.path.join(arguments.bin, "test-backend-ops"), mode, "-o", "FLASH_ATTN_EXT", "-b", device]
    command += ["-p", cases] if cases else []
    environment = dict(os.environ, GGML_BACKEND_PATH=arguments.library)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    for line in process.stdout:
        line = COLOURS.sub("", line.strip())
        found = CASE.search(line)
        if found:
            yield found.group(1), found.group(2)
        elif "error" in line.lower() or "assert" in line.lower():
            print("    " + line, flush=True)
    if process.wait() not in (0, 1):
        raise SystemExit(f"bars: {' '.join(command)} ended with {process.returncode}")


def values(case):
    return dict(field.split("=", 1) for field in re.split(r",(?=\w+=)", case))


def has_our_types(case):
    fields = values(case)
    return {fields["type_K"], fields["type_V"]} <= TYPES


def run_tests(arguments):
    counts, ours = collections.Counter(), collections.Counter()
    for case, outcome in lines_of(arguments, "test", "rapt", arguments.cases):
        kind = "declined" if "not supported" in outcome else "taken" if outcome.endswith("OK") else "failed"
        counts[kind] += 1
        ours[kind] += has_our_types(case)
        if kind != "taken":
            print(f"  {kind}: {case} {outcome if kind == 'failed' else ''}", flush=True)
    share = 100 * ours["taken"] / max(1, sum(ours.values()))
    print(f"test: {counts['taken']} taken, {counts['declined']} declined, {counts['failed']} failed; "
          f"of the types that rapt has {share:.1f} % taken")
    return counts, share >= 95 and counts["failed"] == 0 and counts["taken"] > 0


def times(arguments, device, cases):
    found = {}
    for case, outcome in lines_of(arguments, "perf", device, cases):
        timed = TIMED.search(outcome)
        if timed:
            found[case] = float(timed.group(1))
    return found


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def short(case):
    fields = values(case)
    types = fields["type_K"] if fields["type_K"] == fields["type_V"] else fields["type_K"] + "/" + fields["type_V"]
    heads = int(fields["nh"]) * int(fields["nr23"].strip("[]").split(",")[0])
    text = f"{fields['hsk']}/{fields['hsv']}, {heads}/{fields['nh']} heads, {fields['nb']} x {fields['kv']}, {types}"
    return text + (f", {fields['n_kv_max']} keys seen" if fields["n_kv_max"] != "0" else "")


def run_perf(arguments):
    """Groups of cases in turns, so that a slow minute of the machine hits both."""
    ratios = {}
    groups = [arguments.cases] if arguments.cases else [""] if arguments.all else PERF_CASES
    print(f"{'head dims, heads, queries x keys, type':62} {'ggml us':>10} {'rapt us':>10} {'ratio':>7}")
    for group in groups:
        peers, ours = times(arguments, "CPU", group), times(arguments, "rapt", group)
        for case in peers.keys() & ours.keys():
            ratios[case] = peers[case] / ours[case]
        for case in filter(ratios.get, peers):
            print(f"{short(case):62} {peers[case]:10.0f} {ours[case]:10.0f} {ratios[case]:7.2f}", flush=True)
    queries = {case: int(values(case)["nb"]) for case in ratios}
    mean = geometric_mean(list(ratios.values()))
    for name, chosen in (("of 1 ... 4 queries", lambda n: n <= 4), ("of 32 and more", lambda n: n >= 32)):
        some = [ratios[case] for case in ratios if chosen(queries[case])]
        if some:
            print(f"perf: {len(some)} cases {name}: {geometric_mean(some):.2f} x, {min(some):.2f} ... {max(some):.2f}")
    return mean


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="the folder of test-backend-ops")
    parser.add_argument("library", help="libggml-rapt.so")
    parser.add_argument("--only", choices=["test", "perf"])
    parser.add_argument("--cases", default="", help="a regular expression for ggml's text of a case")
    parser.add_argument("--all", action="store_true", help="all cases of perf (hours)")
    arguments = parser.parse_args()
    counts, passed, mean = collections.Counter(), True, float("nan")
    if arguments.only != "perf":
        counts, passed = run_tests(arguments)
    if arguments.only != "test":
        mean = run_perf(arguments)
    print(f"ggml: {counts['taken']} taken, {counts['declined']} declined, {counts['failed']} failed, perf {mean:.1f} x")
    sys.exit(not passed)


main()
