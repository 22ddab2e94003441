# SPDX-License-Identifier: MIT
"""The scripts of benchmarks/python and what they stored, as far as neither measuring nor a package is required. TAP."""
import argparse
import contextlib
import io
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import unittest.mock
from types import SimpleNamespace

TOP = pathlib.Path(__file__).resolve().parents[2]
PYTHON = TOP / "benchmarks/python"
sys.path.insert(0, str(PYTHON))

import ab
import checks
import figures
import prose
import python_tables
import record
import results
import store
import turns


class Contender:
    """Of which each run takes as long."""

    def __init__(self, seconds):
        self.seconds = seconds

    def sample(self, times):
        return [self.seconds] * times


def short_turns_grow_beside_long_ones():
    peak, row = turns.measure([Contender(0.001), Contender(0.26)], 0, 3)
    assert row.samples >= 3 and peak.samples * 0.001 >= row.samples * 0.26 / 8 - 0.001 * row.samples, peak.samples
    assert turns.measure([Contender(0.001), Contender(0.004)], 0, 3)[0].samples % 4 == 0


def rates_are_medians_but_for_peaks():
    entry = {"name": "prefill/x", "median_ms": 2.0, "real_time": 1.0, "gflops": 100.0, "of_peak_median": 0.5}
    assert results.compact(entry) == {"name": "prefill/x", "ms": 2.0, "gflops": 50.0, "of_peak": 0.5}
    assert results.compact(entry | {"name": "peak/fma/f32/isa:avx2/t1"})["gflops"] == 100
    assert results.compact(entry | {"error_occurred": True}) is None


def no_recording_reads_faster_than_memory():
    for path in results.FOLDER.glob("*.json"):
        parts = json.loads(path.read_text(encoding="utf-8"))
        for rows in (part for part in parts.values() if isinstance(part, list)):
            for row in rows:
                assert row.get("of_stream_median", row.get("of_stream", 0)) <= 1.1, (path.name, row["name"])


def recordings_do_without_git():
    with unittest.mock.patch.dict(os.environ, {"PATH": "/no-such-folder"}):
        assert results.commit() == store.commit_of_library() == results.NO_COMMIT


def pages_are_compared_with_the_limit():
    assert ab.metric("paged16/f16/d128/kv32768/g4/isa:avx512/t1") == "of_limit"
    assert ab.metric("decode/f16/d128/kv32768/g4/isa:avx512/t1") == "of_stream"
    assert ab.metric("prefill/f32/d128/s2048/full/isa:avx512/t1") == "of_peak"


def comparisons_begin_with_their_arguments():
    """By a message, before anything is built, also where there is no git."""
    wrong = (("--filter", "("), ("--rounds", "0"), ("--seconds", "-1"), ("--seconds", "nan"), ("--tolerance", "-1"),
             ("--tolerance", "nan"), ("--wrap", "'"), ("--wrap", "no-such-program"))
    calls = ((["no-such-commit"], "'no-such-commit'"), (["."], "'.'"), ([__file__, __file__], "is no file of"),
             *(([".", *option], option[0]) for option in wrong))
    for (arguments, named), env in itertools.product(calls, (None, os.environ | {"PATH": "/no-such-folder"})):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, PYTHON / "ab.py", *arguments], cwd=folder, capture_output=True,
                                  text=True, check=False, env=env)
            assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
            assert named in done.stderr.partition("ab: error: ")[2] and not os.listdir(folder), done.stderr


def arguments_are_checked_before_measuring():
    wrong = ((checks.seconds, ("-1", "nan", "1e9", "x")), (checks.at_least_one, ("0", "-3", "2.5")),
             (checks.file_to_write, ("/no-such-folder/x.json", str(TOP))))
    for check, texts in wrong:
        for text in texts:
            try:
                raise AssertionError((text, check(text)))
            except (argparse.ArgumentTypeError, ValueError):
                pass
    with tempfile.TemporaryDirectory() as folder:
        assert checks.file_to_write(f"{folder}/x.json") and not os.listdir(folder)
    assert (checks.seconds("0.35"), checks.at_least_one("2")) == (0.35, 2) and checks.file_to_write("/dev/null")


def files_say_which_rows_the_other_lacks():
    with tempfile.TemporaryDirectory() as folder:
        for side, names in (("before", "ab"), ("after", "bc")):
            rows = [{"name": f"prefill/{name}", "of_peak": 0.5} for name in names]
            rows.append({"name": "prefill/failed", "error_occurred": side == "before", "of_peak": 0.5})
            (pathlib.Path(folder) / side).write_text(json.dumps({"benchmarks": rows}), encoding="utf-8")
        done = subprocess.run([sys.executable, PYTHON / "ab.py", "before", "after"], cwd=folder, capture_output=True,
                              text=True, check=False)
    found = [" ".join(line.split()) for line in done.stdout.splitlines() if " only " in line]
    assert found == ["prefill/a only before", "prefill/c only after"], done.stdout
    assert "SLOWER: 0 of 1 rows" in done.stdout, done.stdout


def interrupted_checkouts_are_made_again():
    made = []

    def tar(command, **_):
        made.append(command[-1])
        (pathlib.Path(command[-1]) / "some").touch()
        if len(made) == 1:
            raise KeyboardInterrupt

    before, old = ab.subprocess, os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            ab.subprocess = SimpleNamespace(check_output=lambda command: b"", run=tar)
            for _ in range(3):
                with contextlib.suppress(KeyboardInterrupt):
                    assert os.listdir(ab.checkout("abc")) == ["some"]
        finally:
            ab.subprocess = before
            os.chdir(old)
    assert len(made) == 2, made


def row_of(name, **more):
    return {"name": name, "median_ms": 2.0, "real_time": 1.0, "gbps": 10.0, **more}


def stored(path, rows, date, commit, peers):
    store.datetime = SimpleNamespace(date=SimpleNamespace(today=lambda: SimpleNamespace(isoformat=lambda: date)))
    store.commit_of_library, record.path_here = lambda: commit, lambda isa: path
    with contextlib.redirect_stdout(io.StringIO()):
        store.store(rows, {"rapt": "0.1.0", "peers": peers}, "avx2")
    kept = json.loads(results.types_path(path).read_text(encoding="utf-8"))
    return kept["machine"], {row["name"]: row for row in kept["peers"]}


def rows_say_when_they_were_measured():
    mine, theirs = "decode/f16/g1/isa:avx2/t1", "peer:ggml-folded/decode/f16/g1/t1"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "some.json"
        machine, _ = stored(path, [row_of(mine), row_of(theirs)], "2026-01-02", "aaa", "ggml 1.0, vllm 3")
        assert machine == {"rapt": "0.1.0", "peers": "ggml 1.0", "date": "2026-01-02", "commit": "aaa"}, machine
        machine, rows = stored(path, [row_of("decode/q8_0/g1/isa:avx2/t1")], "2026-02-03", "bbb", "ggml 2.0")
        assert machine["date"] == "2026-01-02 to 2026-02-03" and machine["commit"] == "aaa, bbb", machine
        assert rows[theirs]["version"] == "1.0" and rows[theirs]["date"] == "2026-01-02", rows
        assert "version" not in rows[mine] and rows[mine]["commit"] == "aaa"
        before = results.types_path(path).read_bytes()
        stored(path, [], "2026-03-04", "ccc", "ggml 3.0")
        stored(path, [row_of(mine, of_stream_median=1.2)], "2026-03-04", "ccc", "ggml 3.0")
        assert results.types_path(path).read_bytes() == before


def recordings_before_rows_said_it():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "some.json"
        old = {"name": "peer:ggml/decode/f16/g1/t1", "ms": 1, "date": "2026-01-02"}
        results.save(results.types_path(path), {"machine": {"date": "2026-01-05", "commit": "aaa", "peers": "ggml 1.0"},
                                                "peers": [old]})
        machine, rows = stored(path, [row_of("decode/q8_0/g1/isa:avx2/t1")], "2026-02-03", "bbb", "ggml 2.0")
        assert machine["date"] == "2026-01-02 to 2026-02-03" and machine["peers"] == "ggml 1.0", machine
        assert rows[old["name"]] == old | {"commit": "aaa", "version": "1.0"}, rows


def pictures_name_all_their_files():
    found = results.only_results()
    types, units = results.types_path(found.path).name, results.units_path(found.path).name
    assert types in found.source("peers-units") and units in found.source("roofline")
    assert types not in found.source("peers") and found.path.name in found.source("peers")
    assert figures.check_pictures(found) == []
    found.path = results.FOLDER / "amd-epyc-avx-512-2-cores.json"
    assert len(figures.check_pictures(found)) >= 10


def checks_cover_all_figures():
    done = subprocess.run([sys.executable, PYTHON / "figures.py", "--check", "--only", "promise"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2 and "--only draws a picture" in done.stderr, done.stderr


def ratios_are_sorted_as_numbers():
    cases = "prefill/f32/d128/s2048/full", "prefill/f32/d128/s2048/causal", "decode/f32/d128/kv32768/g4"
    rows = [{"name": f"peer:pytorch/{case}/t1", "rapt_speedup": speedup} for case, speedup in zip(cases, (10.5, 2, 9))]
    assert prose.six_bars(SimpleNamespace(peers=rows)) == ["2.00", "9.00", "10.50"]
    assert [python_tables.ratio(times, 1) for times in (1.234, 12.34, 123.4)] == ["1.23", "12", "123"]


TESTS = (short_turns_grow_beside_long_ones, rates_are_medians_but_for_peaks, no_recording_reads_faster_than_memory,
         recordings_do_without_git, pages_are_compared_with_the_limit, comparisons_begin_with_their_arguments,
         arguments_are_checked_before_measuring, files_say_which_rows_the_other_lacks,
         interrupted_checkouts_are_made_again, rows_say_when_they_were_measured, recordings_before_rows_said_it,
         pictures_name_all_their_files, checks_cover_all_figures, ratios_are_sorted_as_numbers)


def main():
    print(f"1..{len(TESTS)}")
    failed = False
    for number, test in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}")
        except Exception:  # the next ones run all the same
            failed = True
            print(f"not ok {number} - {test.__name__}")
            traceback.print_exc()
    return failed


if __name__ == "__main__":
    sys.exit(main())
