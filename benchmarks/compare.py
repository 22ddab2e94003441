#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares two files of `rapt_bench --json` row by row: compare.py BEFORE.json AFTER.json

Ratios to the peak beside each row are compared, not times: they survive another day and a busier machine.
Exit status 1 if a row lost more than --tolerance percent, in its best and in its median."""
import argparse
import json
import sys


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["benchmarks"]
    return {row["name"]: row for row in rows if "of_peak" in row and not row.get("error_occurred")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--tolerance", type=float, default=3, help="percent, default 3")
    arguments = parser.parse_args()
    before, after = rows_of(arguments.before), rows_of(arguments.after)

    lost = 0
    print(f"{'row':52} {'before':>8} {'after':>8} {'best':>8} {'median':>8}")
    for name in before:
        if name not in after:
            print(f"{name:52} only before")
            continue
        ratio = "of_stream" if name.startswith("decode") else "of_peak"
        best, median = (100 * (after[name][key] / before[name][key] - 1) for key in (ratio, ratio + "_median"))
        slower = max(best, median) < -arguments.tolerance
        lost += slower
        print(f"{name:52} {before[name][ratio]:8.1%} {after[name][ratio]:8.1%} {best:+7.1f}% {median:+7.1f}%"
              + ("  SLOWER" if slower else ""))
    for name in after.keys() - before.keys():
        print(f"{name:52} only after")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
