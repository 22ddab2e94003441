# SPDX-License-Identifier: MIT
"""Compares two commits, or two files of ./dev bench --json, row by row.

Commits are built in build-compare/ and run alternately; a folder with a checkout does for a commit, so "." is the
working tree. Ratios to the peak beside each row are compared, not times: they survive a busier machine. A row is
slower, and the exit status 1, where it lost more than the tolerance and the Mann-Whitney test says that this is no
chance. Files with fewer than four runs of a row (--benchmark_repetitions makes more) allow no test; there best and
median must both have lost."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from scipy.stats import mannwhitneyu

RUNS_FOR_A_TEST = 4
SIGNIFICANT = 0.05


def rows_of(path):
    """Row name -> [(ratio of the best time, ratio of the median)], one for each run."""
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)["benchmarks"]
    rows = {}
    for entry in entries:
        ratio = "of_stream" if entry["name"].startswith("decode") else "of_peak"
        if ratio in entry and not entry.get("error_occurred"):
            rows.setdefault(entry["name"], []).append((entry[ratio], entry[ratio + "_median"]))
    return rows


def build(commit):
    """Returns the benchmark program of a commit or a folder."""
    folder = commit
    if not os.path.isdir(commit):
        name = subprocess.check_output(["git", "rev-parse", "--verify", commit + "^{commit}"], text=True).strip()
        folder = os.path.join("build-compare", name)
        if not os.path.isdir(folder):
            os.makedirs(folder)
            archive = subprocess.check_output(["git", "archive", name])
            subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    subprocess.run(["tools/dev/build.sh", "build-bench", "-Dbenchmarks=enabled", "-Dtests=disabled",
                    "-Dtools=disabled"], cwd=folder, check=True)
    return os.path.abspath(os.path.join(folder, "build-bench/benchmarks/rapt_bench"))


def run_alternately(programs, arguments):
    """The rows of both; who begins changes from run to run."""
    rows = [{}, {}]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        for run in range(arguments.runs):
            print(f"\rrun {run + 1} of {arguments.runs}", end="", file=sys.stderr, flush=True)
            for side in ((0, 1), (1, 0))[run % 2]:
                subprocess.run([programs[side], "--json", path, "--seconds", str(arguments.seconds),
                                "--benchmark_filter=" + arguments.filter], check=True, stdout=subprocess.DEVNULL)
                for name, values in rows_of(path).items():
                    rows[side].setdefault(name, []).extend(values)
    print(file=sys.stderr)
    return rows


def change(before, after):
    return statistics.median(after) / statistics.median(before) - 1


def judge(before, after, tolerance):
    """Returns the changes of best and median, the probability of chance, and the verdict."""
    changes = [change(*sides) for sides in zip(zip(*before), zip(*after))]
    chance = None
    if min(len(before), len(after)) >= RUNS_FOR_A_TEST:
        chance = mannwhitneyu([best for best, _ in before], [best for best, _ in after]).pvalue
        changed = changes[:1] if chance < SIGNIFICANT else [0]
    else:
        changed = changes
    verdict = "SLOWER" if max(changed) < -tolerance else "faster" if min(changed) > tolerance else ""
    return changes, chance, verdict


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--tolerance", type=float, default=3, help="percent, default 3")
    parser.add_argument("--filter", default="^(prefill/f32/d128/s2048|decode/f32/d128).*t1$",
                        help="rows to run, a regular expression")
    parser.add_argument("--runs", type=int, default=8, help="of each commit, default 8")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row in each run, default 0.5")
    return parser.parse_args()


def main():
    arguments = parse()
    sides = (arguments.before, arguments.after)
    if all(os.path.isfile(side) for side in sides):
        before, after = map(rows_of, sides)
    else:
        before, after = run_alternately([build(side) for side in sides], arguments)
    slower = 0
    print(f"{'row':52} {'before':>8} {'after':>8} {'best':>8} {'median':>8} {'chance':>8}")
    for name in before:
        if name not in after:
            print(f"{name:52} only before")
            continue
        changes, chance, verdict = judge(before[name], after[name], arguments.tolerance / 100)
        slower += verdict == "SLOWER"
        middle = [statistics.median(best for best, _ in runs) for runs in (before[name], after[name])]
        print(f"{name:52} {middle[0]:8.1%} {middle[1]:8.1%} {changes[0]:+8.1%} {changes[1]:+8.1%} "
              f"{'' if chance is None else format(chance, '8.4f'):>8}  {verdict}".rstrip())
    for name in sorted(after.keys() - before.keys()):
        print(f"{name:52} only after")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
