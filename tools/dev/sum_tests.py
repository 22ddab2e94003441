#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums the results of several test runs; the last line is "N passed, N failed".

Arguments: NAME=TESTLOG.json[:PROGRAM...] of each run of Meson, with its JUnit file beside it, and the programs that
must have run; or NAME=FILE.xml of pytest; --skipped=TEXT for each run that was not made.
"""
import json
import os
import sys
import xml.etree.ElementTree


def plain_name(name):
    """Without the suite, which Meson sometimes adds."""
    return name.split(" / ")[-1]


def counts_of(suite):
    tests, failures, errors, skipped = (int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped"))
    return tests, failures + errors, skipped


def files_of(path):
    """The same of pytest's file, which is missing after a run that could not begin."""
    suites = list(xml.etree.ElementTree.parse(path).getroot().iter("testsuite")) if os.path.exists(path) else []
    for tests, failed, skipped in map(counts_of, suites):
        yield max(tests - failed - skipped, 0), max(failed, tests == 0), skipped


def programs_of_log(path):
    """Each program's name, and its passed, failed and skipped tests: at least one failed if it ended badly."""
    suites = xml.etree.ElementTree.parse(path.removesuffix("json") + "junit.xml").getroot().iter("testsuite")
    counts = {plain_name(suite.get("name").split(".", 1)[-1]): suite for suite in suites}
    with open(path, encoding="utf-8") as log:
        for program in map(json.loads, log):
            name = plain_name(program["name"])
            tests, failed, skipped = counts_of(counts.get(name, {}))
            if program["result"] not in ("OK", "SKIP") or tests == 0:
                failed = max(failed, 1)
            yield name, (max(tests - failed - skipped, 0), failed, skipped)


def run_of(file):
    """Each program's passed, failed and skipped tests, and the names of programs that did not run."""
    path, *expected = file.split(":")
    if path.endswith(".xml"):
        return list(files_of(path)), []
    programs = list(programs_of_log(path)) if os.path.exists(path) else []
    return [sums for _, sums in programs], sorted(set(expected) - {name for name, _ in programs})


def main(arguments):
    missing = [a.split("=", 1)[1] for a in arguments if a.startswith("--skipped=")]
    total = [0, 0, 0]
    for argument in arguments:
        if argument.startswith("--skipped="):
            continue
        name, path = argument.split("=", 1)
        run, absent = run_of(path)
        sums = [sum(column) for column in zip(*run)] or [0, 1, 0]
        print("%-9s %4d passed, %d failed, %d skipped in %d programs" % (name, *sums, len(run)))
        for program in absent:
            print("missing:  %s was to run %s, and there is no such program" % (name, program))
        total = [a + b for a, b in zip(total, sums)]
        total[1] += len(absent)
    for text in missing:
        print("not run:  " + text)
    if os.environ.get("CI") == "true":
        total[1] += len(missing)
    print("%d passed, %d failed" % (total[0], total[1]))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
