#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums what the cmocka programs of several runs printed; the last line is "N passed, N failed".

Arguments: NAME=TESTLOG.json of each run, --skipped=TEXT for each run that was not made.
"""
import json
import os
import re
import sys


def counts(program):
    """Passed, failed and skipped tests of one program. One that ends badly failed at least once."""
    text = program.get("stdout", "") + program.get("stderr", "")
    passed, failed, skipped = (
        sum(map(int, re.findall(r"^\[ +%s +\] (\d+) test\(s\)" % word, text, re.MULTILINE)))
        for word in ("PASSED", "FAILED", "SKIPPED"))
    if program["result"] not in ("OK", "SKIP") or (program["result"] == "OK" and passed + skipped == 0):
        failed = max(failed, 1)
    return passed, failed, skipped


def main(arguments):
    missing = [a.split("=", 1)[1] for a in arguments if a.startswith("--skipped=")]
    total = [0, 0, 0]
    for argument in arguments:
        if argument.startswith("--skipped="):
            continue
        name, path = argument.split("=", 1)
        with open(path, encoding="utf-8") as log:
            run = [counts(json.loads(line)) for line in log]
        sums = [sum(column) for column in zip(*run)] or [0, 1, 0]
        print("%-9s %4d passed, %d failed, %d skipped in %d programs" % (name, *sums, len(run)))
        total = [a + b for a, b in zip(total, sums)]
    for text in missing:
        print("not run:  " + text)
    if os.environ.get("CI") == "true":
        total[1] += len(missing)
    print("%d passed, %d failed" % (total[0], total[1]))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
