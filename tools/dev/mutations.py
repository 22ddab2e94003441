#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks a copy of the sources in one place at a time and looks for a test that notices.

usage: mutations.py [--named] [--isa NAME] [TEXT | FIRST-LAST]...
       mutations.py --check
    TEXT, FIRST-LAST: only edits whose line has such a text, or lines of the list
    --named: the tests that a line names, and not the whole suite
    --check: only whether each text stands once in its file, and each test exists
    --isa: builds the kernels of this instruction set beside the scalar ones, and tests it: a third of the time.
           amx and avx512_bf16, where the machine has them, are tested instead of the table that they belong to;
           with RAPT_TEST_TILES=1 in the environment amx is emulated where it has AVX512_BF16

tests/mutations.txt has a line for each edit:

    file @@ text @@ replacement @@ tests

The text stands once in the file; \\n in it is a line's end. The tests are tried in this order, with 4 % of
their random calls, with a quarter, with all (RAPT_TEST_SCALE=4: no more than that); then the whole native suite until
one fails. A test is a name of tests/meson.build, or a name and a pattern of its test functions ("check/*softmax").
The copy and its build stay in build-mutations/, so that a second run compiles little.
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if sys.argv[-1] == "--isa":
    sys.exit("mutations: --isa takes a name, say avx2")
ISA = sys.argv[sys.argv.index("--isa") + 1] if "--isa" in sys.argv else None
TABLE = "avx512" if ISA in ("amx", "avx512_bf16") else ISA  # a unit's kernels are built with it
TREE, BUILD = (os.path.join(ROOT, "build-mutations", part) for part in ("tree", "build-" + TABLE if TABLE else "build"))
LIST = os.path.join(ROOT, "tests", "mutations.txt")
PARTS = [int(os.environ["RAPT_TEST_SCALE"])] if "RAPT_TEST_SCALE" in os.environ else [4, 25, 100]
EMULATED = "tiles_"  # the same program with an emulated matrix unit
SECONDS = 400  # of processor time per test; a test that hangs has noticed
WALL_SECONDS = 1800  # more, so that a busy machine is not taken for a hang


def is_chosen(line, number, pattern):
    numbers = re.fullmatch(r"(\d+)-(\d+)", pattern)
    return int(numbers[1]) <= number <= int(numbers[2]) if numbers else pattern in line


def read_edits(patterns):
    edits = []
    with open(LIST, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#") or not any(is_chosen(line, number, p) for p in patterns):
                continue
            parts = [part.strip().replace("\\n", "\n") for part in line.split("@@")]
            if len(parts) != 4 or not parts[3]:
                sys.exit(f"{LIST}:{number}: not 'file @@ text @@ replacement @@ tests'")
            edits.append((number, *parts[:3], parts[3].split()))
    return edits


def copied(path, content):
    """The copy's content: with less optimisation kernels compile faster, to the same bits."""
    if os.path.relpath(path, TREE) == os.path.join("src", "meson.build"):
        return content.replace(b"'optimization=3'", b"'optimization=1'")
    return content


def copy_tree():
    """Only files that changed, so that ninja rebuilds only what depends on them."""
    seen = set()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith(("build", ".")) and f != "__pycache__"]
        for name in files:
            source = os.path.join(folder, name)
            target = os.path.join(TREE, os.path.relpath(source, ROOT))
            seen.add(target)
            with open(source, "rb") as file:
                content = copied(target, file.read())
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.exists(target):
                with open(target, "rb") as file:
                    if file.read() == content:
                        continue
            with open(target, "wb") as file:
                file.write(content)
            shutil.copymode(source, target)
    for folder, _, files in os.walk(TREE):
        for name in files:
            if os.path.join(folder, name) not in seen:
                os.remove(os.path.join(folder, name))


def run(command, seconds=None, **environment):
    """0, or the command's output; None after a timeout. A pattern that matches no test is a failure."""
    limit = (lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))) if seconds else None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                               preexec_fn=limit, env={**os.environ, **environment})
    try:
        output, _ = process.communicate(timeout=WALL_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # Meson ends the test, which has its own group
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return None
    if process.returncode == 0 and b"Running 0 test(s)" not in output:
        return 0
    return output.decode(errors="replace") + f"status {process.returncode}"


def program(test):
    name = test.split("/")[0].removeprefix(EMULATED)
    return ("tests/fuzz/test_" if name.startswith("fuzz_") else "tests/test_") + name


def build(tests):
    """Tests of the command run it, with failing allocators; these and an empty list build everything."""
    everything = any(test.startswith("command") for test in tests)
    return run(["ninja", "-C", BUILD, *([] if everything else map(program, tests))])


def passes(test, percent=100):
    command = ["meson", "test", "-C", BUILD, "--no-rebuild", "--timeout-multiplier", "10", test]
    if "/" in test or test.startswith(EMULATED):  # Meson would set its own scale
        command = [os.path.join(BUILD, program(test)), *test.split("/", 1)[1:]]
    isa = "amx" if test.startswith(EMULATED) else ISA
    return run(command, SECONDS * max(percent, 50) // 100, OMP_WAIT_POLICY="passive", RAPT_TEST_SCALE=str(percent),
               **({"RAPT_TEST_ISA": isa} if isa else {}),
               **({"RAPT_TEST_TILES": "1"} if test.startswith(EMULATED) else {})) == 0


def whole_suite():
    """The name of a test that fails, or None."""
    listed = subprocess.run(["meson", "test", "-C", BUILD, "--list"], capture_output=True, text=True, check=True)
    names = [line.split()[-1] for line in listed.stdout.splitlines()]
    for name in names:
        if name != "mutations" and not passes(name):
            return name
    return None


def try_edit(tests, only_named):
    """The test that notices the edit; None if none does."""
    wrong = build(tests)
    if wrong != 0:
        return None, "does not build:\n" + wrong[-2000:]
    for percent in PARTS:
        for test in tests:
            if not passes(test, percent):
                return test, ""
    if only_named:
        return None, ""
    wrong = build([])
    if wrong != 0:
        return None, "does not build:\n" + wrong[-2000:]
    return whole_suite(), ""


def apply(file, text, replacement, tests, only_named):
    path = os.path.join(TREE, file)
    with open(path, encoding="utf-8") as source:
        content = source.read()
    if content.count(text) != 1:
        return None, f"the text stands there {content.count(text)} times"
    try:
        with open(path, "w", encoding="utf-8") as source:
            source.write(content.replace(text, replacement))
        return try_edit(tests, only_named)
    finally:
        with open(path, "w", encoding="utf-8") as source:
            source.write(content)


def is_test(name):
    """Whether tests/meson.build, or that of the fuzz targets, has such a test."""
    name = name.removeprefix(EMULATED)
    folder = "tests/fuzz" if name.startswith("fuzz_") else "tests"
    with open(os.path.join(ROOT, folder, "meson.build"), encoding="utf-8") as listed:
        return f"'{name.removeprefix('fuzz_')}'" in listed.read()


def check(edits):
    """Lines that no longer fit the code: their text is not once in its file, or one of their tests is gone."""
    wrong = []
    for number, file, text, _, tests in edits:
        path = os.path.join(ROOT, file)
        content = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if content.count(text) != 1:
            wrong.append(f"{number}: stands {content.count(text)} times in {file}: {' '.join(text.split())}")
        wrong += [f"{number}: there is no test {test}" for test in tests if not is_test(test.split("/")[0])]
    for line in wrong:
        print("tests/mutations.txt:" + line)
    sys.exit(1 if wrong else 0)


def show(number, file, text, replacement, result, seconds):
    one_line = " ".join(f"{text}  ->  {replacement}".split())
    print(f"{number:4} {result:<28} {seconds:5.0f} s  {file}: {one_line[:150]}", flush=True)


def passes_unchanged(test, proved):
    """A test that fails anyway proves nothing: each must pass, in one of three attempts on a busy machine."""
    if test not in proved:
        wrong = build([test])
        if wrong != 0:
            sys.exit("the sources do not build:\n" + wrong[-2000:])
        proved[test] = any(passes(test, PARTS[0]) for _ in range(3))
    return proved[test]


def main():
    arguments = sys.argv[1:]
    if arguments == ["--check"]:
        check(read_edits([""]))
    only_named = "--named" in arguments
    arguments = [argument for argument in arguments if argument not in ("--named", "--isa", ISA)]
    edits = read_edits(arguments or [""])
    if not edits:
        sys.exit("no line of tests/mutations.txt has " + " or ".join(arguments))
    copy_tree()
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        isas = [f"-Disas={TABLE}"] if TABLE else []
        wrong = run(["meson", "setup", BUILD, TREE, "-Dbenchmarks=disabled", *isas])
        if wrong != 0:
            sys.exit(wrong)
    proved = {}
    killed = survived = broken = 0
    for number, file, text, replacement, tests in edits:
        start = time.monotonic()
        by, error = apply(file, text, replacement, tests, only_named)
        if by and not passes_unchanged(by, proved):
            by, error = None, f"{by} fails on the unchanged sources too"
        broken += bool(error)
        killed += by is not None
        survived += by is None and not error
        result = "UNCLEAR" if error else f"killed by {by}" if by else "SURVIVED"
        show(number, file, text, replacement, result, time.monotonic() - start)
        if error:
            print(error)
    print(f"{len(edits)} edits: {killed} killed, {survived} survived" + (f", {broken} unclear" if broken else ""))
    sys.exit(1 if survived or broken else 0)


if __name__ == "__main__":
    main()
