# SPDX-License-Identifier: MIT
"""Is it slower? Runs the benchmarks of two commits in turns and compares them row by row.

Each side is a commit, or a folder with a checkout; "." is the working tree. Both are built once, in build-compare/, and
copied, so the tree may change meanwhile. Some rows at a time are run by the old and the new program in turns; who
begins changes from round to round. What is compared are ratios to the peak that took turns with the row in its program
(of_peak, of_stream or of_limit, as benchmarks/README.md says of its kind), for `append` that to memcpy, for `tiny` the
time. Rows that seem to have changed by more than the tolerance get as many rounds again. A row is SLOWER, and the exit
status 1, where its median lost more than the tolerance and the Mann-Whitney test gives chance less than 5 %. So is the
exit status where a row failed on a side.

Two files of ./dev bench --json may stand for the sides; one run in each allows no test."""
import argparse
import json
import math
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

import checks
import results
from chance import chance

RUNS_FOR_A_TEST = 4
SIGNIFICANT = 0.05
ROWS_AT_A_TIME = 20
TOO_LARGE = "too little memory"  # part of what rapt_bench says of a row that no failure of rapt left out
NOT_RAPT = re.compile("peer|peak")
MAIN_ROWS = ("d128/s2048/(full|causal)/isa|d64/s2048/(full|causal)/isa:avx512|d128/s(128|512)/causal/isa:avx512/t1|"
             "s4096/full/layout:kv16k|d128/s2048/(softcap|bias|boolmask_causal|window512)|^decode/f(32|16)/d128|^mixed|"
             "^extend.*q(2|8|16)/kv32768|^many|^ragged|^tiny|^matmul/f32/m(512k768n768|1k4096n4096)/isa:avx512|^layer")
METRICS = {"decode": "of_stream", "many": "of_stream", "extend": "of_limit", "matmul": "of_limit", "mixed": "of_limit",
           "append": "of_copy", "tiny": "microseconds"}


def metric(row):
    kind = row.split("/")[0]  # in pages of any length, prefill and decode alike
    return "of_limit" if kind.startswith("paged") else METRICS.get(kind, "of_peak")


def failure(entry):
    """Why a row has nothing to compare; empty where it has."""
    if entry.get("error_occurred"):
        return entry.get("error_message") or "says not why"
    return "" if entry.get(metric(entry["name"])) else f"has no {metric(entry['name'])}"


def rows_of(path):
    """Row -> [speed], one for each run, more is faster; and row -> why it failed."""
    rows, failures = {}, {}
    with open(path, encoding="utf-8") as file:
        entries = json.load(file)["benchmarks"]
    for entry in entries:
        name, why = entry["name"], failure(entry)
        if NOT_RAPT.match(name) or TOO_LARGE in why:
            continue
        if why:
            failures[name] = why
        else:
            value = entry[metric(name)]
            rows.setdefault(name, []).append(1 / value if name.startswith("tiny") else value)
    return rows, failures


def commit_of(name):
    """Empty where there is none of this name."""
    return results.output("git", "rev-parse", "--verify", "--quiet", name + "^{commit}")


def checkout(commit):
    """Its folder; it is complete, since it comes by a rename."""
    folder = os.path.join("build-compare", commit)
    if not os.path.isdir(folder):
        part = folder + ".part"
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        archive = subprocess.check_output(["git", "archive", commit])
        subprocess.run(["tar", "-x", "-C", part], input=archive, check=True)
        os.rename(part, folder)
    return folder


def build(side, copy):
    """Builds the benchmarks of a commit or a folder into one file, but for the system's libraries."""
    folder = side if os.path.isdir(side) else checkout(commit_of(side))
    subprocess.run(["tools/dev/build.sh", "build-ab", "-Dbenchmarks=enabled", "-Dtests=disabled", "-Dtools=disabled",
                    "-Ddefault_library=static"], cwd=folder, check=True, stdout=sys.stderr)
    os.makedirs("build-compare", exist_ok=True)
    return os.path.abspath(shutil.copy(os.path.join(folder, "build-ab/benchmarks/rapt_bench"),
                                       os.path.join("build-compare", copy)))


def say(text):
    """A line of progress, which the next one takes the place of."""
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


class Programs:
    def __init__(self, before, after, options):
        self.paths = [build(before, "before"), build(after, "after")]
        self.wrap, self.seconds = shlex.split(options.wrap), str(options.seconds)
        self.failures = [{}, {}]

    def list(self, side):
        return subprocess.check_output(self.wrap + [self.paths[side], "--list"], text=True).split()

    def run(self, side, names):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            done = subprocess.run(self.wrap + [self.paths[side], "--json", path, "--seconds", self.seconds,
                                               f"--benchmark_filter=^({'|'.join(names)})$"],
                                  check=False, stdout=subprocess.DEVNULL)
            if done.returncode != 1:  # then a row failed, and the file says which
                done.check_returncode()
            return rows_of(path)

    def alternate(self, names, rounds, speeds):
        """Adds rounds speeds of each row to both sides."""
        for number in range(rounds):
            for side in ((0, 1), (1, 0))[number % 2]:
                say(f"round {number + 1} of {rounds}, {len(names)} rows from {names[0]} on")
                rows, failures = self.run(side, names)
                self.failures[side].update(failures)
                for name, values in rows.items():
                    speeds[side].setdefault(name, []).extend(values)
        say("")


class Change:
    """Of one row."""
    def __init__(self, name, before, after, tolerance):
        self.name, self.middle = name, [statistics.median(before), statistics.median(after)]
        self.change = self.middle[1] / self.middle[0] - 1
        self.spread = max((max(side) - min(side)) / statistics.median(side) for side in (before, after))
        self.chance = chance(before, after) if min(len(before), len(after)) >= RUNS_FOR_A_TEST else None
        self.moved = abs(self.change) > tolerance
        self.verdict = ""
        if self.moved:
            sure = self.chance is None or self.chance < SIGNIFICANT
            self.verdict = ("SLOWER" if sure else "slower?") if self.change < 0 else ("faster" if sure else "faster?")

    def line(self):
        tiny = metric(self.name) == "microseconds"
        middle = [f"{1 / speed:.3f}us" if tiny else f"{speed:.1%}" for speed in self.middle]
        return (f"{self.name:60} {metric(self.name):>12} {middle[0]:>8} {middle[1]:>8} {self.change:+8.1%} "
                f"{self.spread:8.1%} {'' if self.chance is None else format(self.chance, '8.4f'):>8}  "
                f"{self.verdict}").rstrip()


def changes(names, speeds, tolerance):
    return [Change(name, *[side[name] for side in speeds], tolerance) for name in names
            if all(name in side for side in speeds)]


def on_both_sides(lists):
    """The names that both lists have; prints the others."""
    for names, others, word in ((*lists, "before"), (*reversed(lists), "after")):
        for name in names:
            if name not in others:
                print(f"{name:60} only {word}")
    return [name for name in lists[1] if name in lists[0]]


def measure(options):
    """Returns the names of all rows, and speeds and failures of both sides; prints rows as they come."""
    programs, speeds = Programs(options.before, options.after, options), [{}, {}]
    pattern = re.compile("" if options.all else options.filter)
    lists = [[name for name in programs.list(side) if pattern.search(name) and not NOT_RAPT.match(name)]
             for side in (0, 1)]
    names = on_both_sides(lists)
    for first in range(0, len(names), ROWS_AT_A_TIME):
        group = names[first:first + ROWS_AT_A_TIME]
        programs.alternate(group, options.rounds, speeds)
        for change in changes(group, speeds, options.tolerance / 100):
            print(change.line(), flush=True)
    again = [change.name for change in changes(names, speeds, options.tolerance / 100) if change.moved]
    for first in range(0, len(again), ROWS_AT_A_TIME):
        programs.alternate(again[first:first + ROWS_AT_A_TIME], options.rounds, speeds)
    if again:
        print("\nonce more, with all rounds:")
        for change in changes(again, speeds, options.tolerance / 100):
            print(change.line())
    return names, speeds, programs.failures


def print_failures(failures):
    print(f"\nfailed: {len(set().union(*failures))} rows")
    for word, side in zip(("before", "after"), failures):
        for name, why in side.items():
            print(f"  {name} {word}: {why}")


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench ab", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=".", help="default: the working tree")
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument("--filter", default=MAIN_ROWS, metavar="REGEX", help="rows to run; default: the main ones")
    rows.add_argument("--all", action="store_true", help="all rows")
    parser.add_argument("--rounds", type=checks.at_least_one, default=5, help="runs of each side, default 5")
    parser.add_argument("--seconds", type=checks.seconds, default=0.4, help="for each row in each run, default 0.4")
    parser.add_argument("--tolerance", type=float, default=2, help="percent, default 2")
    parser.add_argument("--wrap", default="", metavar="COMMAND", help="put before each run, say 'taskset -c 1'")
    return checked(parser, parser.parse_args())


def check_wrap(parser, command):
    try:
        words = shlex.split(command)
    except ValueError as error:
        parser.error(f"--wrap is no command: {error}")
    if words and not shutil.which(words[0]):
        parser.error(f"--wrap: there is no program '{words[0]}'")


def check_files(parser, paths):
    for path in paths:
        try:
            rows_of(path)
        except (AttributeError, KeyError, TypeError, ValueError):
            parser.error(f"'{path}' is no file of ./dev bench --json")


def checked(parser, options):
    """Before anything is built, which takes minutes."""
    try:
        re.compile(options.filter)
    except re.error as error:
        parser.error(f"--filter is no regular expression: {error}")
    if not 0 <= options.tolerance < math.inf:
        parser.error("--tolerance: at least 0")
    check_wrap(parser, options.wrap)
    sides = [options.before, options.after]
    if all(map(os.path.isfile, sides)):
        check_files(parser, sides)
        return options
    for side in sides:
        if os.path.isdir(side) and not os.path.exists(os.path.join(side, "tools/dev/build.sh")):
            parser.error(f"the folder '{side}' is no checkout of rapt")
        if not os.path.isdir(side) and not commit_of(side):
            parser.error(f"'{side}' is no commit, no folder, and no file beside another")
    return options


def main():
    options = parse()
    print(f"{'row':60} {'compared':>12} {'before':>8} {'after':>8} {'change':>8} {'spread':>8} {'chance':>8}")
    if os.path.isfile(options.before) and os.path.isfile(options.after):
        speeds, failures = zip(rows_of(options.before), rows_of(options.after))
        names = on_both_sides([[*side, *failed] for side, failed in zip(speeds, failures)])
        for change in changes(names, speeds, options.tolerance / 100):
            print(change.line())
    else:
        names, speeds, failures = measure(options)
    final = changes(names, speeds, options.tolerance / 100)
    for verdict in ("SLOWER", "slower?", "faster"):
        found = [change for change in final if change.verdict == verdict]
        print(f"\n{verdict}: {len(found)} of {len(final)} rows")
        for change in found:
            print(f"  {change.name} {change.change:+.1%}")
    print_failures(failures)
    return 1 if not final or any(failures) or any(change.verdict == "SLOWER" for change in final) else 0


if __name__ == "__main__":
    sys.exit(main())
