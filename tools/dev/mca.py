#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Static analysis of NEON inner loops: the share of a core's FMA rate that llvm-mca predicts.

usage: mca.py OBJECT FUNCTION...

Prints every innermost straight loop of OBJECT with at least 16 FMA accumulators, as many as four units of latency 4
need. None may touch the stack. Those with 24, the full tiles, must reach 95 % of the model's own FMA peak, and each
FUNCTION must have one. A bar on code generation, not a speed.
"""
import json
import re
import subprocess
import sys

CORES = ("neoverse-n1", "neoverse-v1", "neoverse-v2", "oryon-1")
ENOUGH = 0.95
ACCUMULATORS = 16
FULL_TILE = 24
PEAK = ["fmla v%d.4s, v30.4s, v31.4s" % i for i in range(24)]


def output_of(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def functions(path):
    """Name and [(address, instruction)] of each function of an object file."""
    name, code = None, []
    for line in output_of(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", path]).splitlines():
        start = re.match(r"[0-9a-f]+ <(.+)>:", line)
        instruction = re.match(r" +([0-9a-f]+):\t(.*)", line)
        if start:
            if name:
                yield name, code
            name, code = start.group(1), []
        elif instruction:
            text = re.sub(r"\s*//.*", "", instruction.group(2)).replace("\t", " ")
            code.append((int(instruction.group(1), 16), text))
    if name:
        yield name, code


def straight_loops(code):
    """Bodies whose only branch is the one at their end that repeats them."""
    branch = re.compile(r"(b|b\.\w+|bl|cbn?z|tbn?z|blr|br|ret)\b")
    position = {address: i for i, (address, _) in enumerate(code)}
    for end, (address, text) in enumerate(code):
        target = re.search(r"\b([0-9a-f]+) <", text)
        if not branch.match(text) or text.startswith("bl") or not target:
            continue
        first = position.get(int(target.group(1), 16), len(code))
        body = [t for _, t in code[first:end]]
        if first < end and not any(branch.match(t) for t in body):
            yield code[first][0], body + [re.sub(r"[0-9a-f]+ <.*", ".", text)]


def accumulators(body):
    return {m.group(1) for m in (re.match(r"fmla (v\d+)\.4s", t) for t in body) if m}


def cycles(core, bodies):
    """Cycles per iteration of each body, without filling the pipeline."""
    text = "".join("# LLVM-MCA-BEGIN %d\n%s\n# LLVM-MCA-END %d\n" % (i, "\n".join(b), i) for i, b in enumerate(bodies))
    totals = []
    for iterations in (200, 600):
        report = json.loads(output_of(["llvm-mca-19", "--mtriple=aarch64", "--mcpu=" + core, "--json",
                                       "--skip-unsupported-instructions=lack-sched",
                                       "--iterations=%d" % iterations], text))
        totals.append([region["SummaryView"]["TotalCycles"] for region in report["CodeRegions"]])
    return [(b - a) / 400 for a, b in zip(*totals)]


def main(path, demanded):
    found = [(name, address, body) for name, code in functions(path) for address, body in straight_loops(code)
             if len(accumulators(body)) >= ACCUMULATORS]
    fmas = [sum(t.startswith("fmla") for t in body) for _, _, body in found]
    stack = [any("[sp" in t for t in body) for _, _, body in found]
    shares = []
    for core in CORES:
        *loop_cycles, peak_cycles = cycles(core, [body for _, _, body in found] + [PEAK])
        peak = len(PEAK) / peak_cycles
        shares.append([n / c / peak for n, c in zip(fmas, loop_cycles)])
    print("%-16s %6s %5s %5s" % ("loop", "at", "FMAs", "other"), *("%11s" % core for core in CORES), " stack")
    for i, (name, address, body) in enumerate(found):
        print("%-16s %6x %5d %5d" % (name, address, fmas[i], len(body) - fmas[i]),
              *("%9.1f %%" % (100 * share[i]) for share in shares), "  yes" if stack[i] else "   no")
    full = [i for i in range(len(found)) if fmas[i] >= FULL_TILE]
    missing = sorted(set(demanded) - {found[i][0] for i in full})
    failures = [found[i][0] + " touches the stack" for i in range(len(found)) if stack[i]]
    failures += [found[i][0] + " is slow" for i in full if min(share[i] for share in shares) < ENOUGH]
    failures += [name + " has no full tile" for name in missing]
    print("NEON inner loops: " + ("; ".join(failures) or "ok"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
