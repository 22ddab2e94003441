#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of docs/python.md from benchmarks/results/python.json; --check says whether they are those."""
import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).parents[2]


def ratio(theirs, ours):
    return f"{theirs / ours:.0f}" if theirs / ours >= 10 else f"{theirs / ours:.2f}"


def milliseconds(number):
    return f"{number:.0f} ms" if number >= 100 else f"{number:.3g} ms"


def speed(stored):
    decode, bfloat16, prefill = (stored[part] for part in ("decode", "decode_bfloat16", "prefill"))
    yield "| | sdpa | rapt | times |"
    yield "| --- | --- | --- | --- |"
    for name, part, field in (
            ("generate, attention of a token, 8 layers", decode, "attention_ms_per_token"),
            ("generate, a token end to end", decode, "ms_per_token"),
            ("generate in bfloat16, attention of a token", bfloat16, "attention_ms_per_token"),
            ("generate in bfloat16, a token end to end", bfloat16, "ms_per_token"),
            ("prefill, attention of a layer", prefill, "attention_ms"),
            ("prefill, a layer end to end", prefill, "ms")):
        for suffix, cache in (("", ""), ("_growing", ", GrowingCache")):
            if "rapt" + suffix in part:
                theirs, ours = part["sdpa" + suffix][field], part["rapt" + suffix][field]
                yield f"| {name}{cache} | {milliseconds(theirs)} | {milliseconds(ours)} | {ratio(theirs, ours)} |"


def ways(stored):
    yield "| attention of a token, 8 layers | float32 | bfloat16 |"
    yield "| --- | --- | --- |"
    for name in stored["ways"]["float32"]:
        yield f"| {name} | " + " | ".join(milliseconds(part[name]) for part in stored["ways"].values()) + " |"


def calls(stored):
    yield "| a call on one row of 64 numbers | µs | more than in C |"
    yield "| --- | --- | --- |"
    in_c = stored["calls"]["c_us"]
    yield f"| C | {in_c:.1f} | |"
    for name, microseconds in stored["calls"].items():
        if name not in ("c_us", "sdpa"):
            yield f"| {name} | {microseconds:.1f} | {microseconds - in_c:.1f} |"
    yield f"| PyTorch's sdpa | {stored['calls']['sdpa']:.1f} | |"


def machine(stored):
    about = stored["machine"]
    yield (f"{about['cpu']}, {about['threads']} threads, {about['isa']}; PyTorch {about['torch'].split('+')[0]}, "
           f"Transformers {about['transformers']}.")


def main():
    stored = json.loads((TOP / "benchmarks/results/python.json").read_text(encoding="utf-8"))
    page = TOP / "docs/python.md"
    text = before = page.read_text(encoding="utf-8")
    for table in (machine, speed, ways, calls):
        lines = "\n".join(table(stored))
        text = re.sub(rf"(<!-- table: {table.__name__} -->\n).*?(<!-- end of table -->)",
                      lambda found: f"{found[1]}{lines}\n{found[2]}", text, flags=re.DOTALL)
    if "--check" in sys.argv[1:]:
        return int(text != before)
    page.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
