# SPDX-License-Identifier: MIT
"""The promise: one sequence of tokens has the same bits however it is computed. Hashes of the results of rapt and of the
peers, computed in several ways, each in a process of its own: with one thread and with several, inside a batch, token by
token, with the instructions of older processors and, for rapt, on emulated ARM."""
import argparse
import hashlib
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from types import SimpleNamespace

import numpy

from cases import Case
from library import Library, Rapt
from peers import PEERS

TOKENS, DECODED = 256, 64  # of which the last are decoded, and hashed in all ways
WHOLE = Case("prefill", 64, TOKENS, TOKENS, 8, causal=True)
HERE = pathlib.Path(__file__).parent
NAMES = ["rapt"] + [module.removeprefix("peer_") for module, _ in PEERS]
# How each is told to be content with AVX2, and with less than AVX; ONNX Runtime cannot be told.
SWITCHES = {
    "older": {"rapt": {"RAPT_ISA": "avx2"}, "openvino": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
              "pytorch": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}},
    "oldest": {"rapt": {"RAPT_ISA": "scalar"}, "openvino": {"ONEDNN_MAX_CPU_ISA": "SSE41"},
               "pytorch": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41",
                           "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}},
}
ARM_COMMAND = pathlib.Path("build-arm/tools/rapt")
NOT_RUN = "not run"  # in place of a hash


def arrays(batch):
    """Sequence 0 is the one that is asked for, whatever the batch."""
    random = [numpy.random.default_rng(seed).standard_normal((3, 8, TOKENS, 64), numpy.float32)
              for seed in range(1, batch + 1)]
    return [numpy.ascontiguousarray(numpy.stack([sequence[i] for sequence in random])) for i in range(3)]


def attention(name, library, threads):
    """A function of a case and its query, key and value."""
    if name == "rapt":
        isa = library.chosen_isa()
        return lambda problem: Rapt(library, problem, isa, threads).result()
    module, peer = PEERS[NAMES.index(name) - 1]
    peer = getattr(importlib.import_module(module), peer)(threads)
    return lambda problem: next(iter(peer.ways(problem)))[1].result()


def problem(case, query, key, value):
    return SimpleNamespace(case=case, query=query, caches=[(key, value)], take=lambda times: 0)


def digest(out):
    """Of the last tokens of a sequence, [heads, tokens, dim]."""
    return hashlib.sha256(numpy.ascontiguousarray(out[:, -DECODED:], numpy.float32).tobytes()).hexdigest()


def decode(attend, query, key, value):
    rows = []
    for seen in range(TOKENS - DECODED + 1, TOKENS + 1):
        case = replace(WHOLE, query_length=1, kv_length=seen, causal=False)
        parts = [query[:, :, seen - 1:seen], key[:, :, :seen], value[:, :, :seen]]
        rows.append(numpy.array(attend(problem(case, *map(numpy.ascontiguousarray, parts)))).reshape(8, 1, 64))
    return numpy.concatenate(rows, 1)


def work(name, library, threads, ways):
    """Runs in a process of its own; prints the hash of each way."""
    attend, found = attention(name, Library(library) if name == "rapt" else None, threads), {}
    one = arrays(1)
    if "prefill" in ways:
        found["prefill"] = digest(numpy.array(attend(problem(WHOLE, *one)))[0])
    if "batch" in ways:
        case = replace(WHOLE, batch=3)
        found["batch"] = digest(numpy.array(attend(problem(case, *arrays(3)))).reshape(3, 8, TOKENS, 64)[0])
    if "decode" in ways:
        found["decode"] = digest(decode(attend, *one))
    print(json.dumps(found))


def ask(name, library, threads, ways, switches=None):
    command = [sys.executable, str(HERE / "bits.py"), "--library", library, "--worker", name, "--threads",
               str(threads), "--ways", *ways]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | (switches or {}))
    if done.returncode != 0:
        print(f"{name} {' '.join(ways)}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def on_arm():
    """By the command, cross-built (./dev arm), under qemu-aarch64; NOT_RUN where either is missing."""
    emulator = shutil.which("qemu-aarch64")
    if not emulator or not ARM_COMMAND.exists():
        print(f"rapt on ARM: not run, without {ARM_COMMAND if emulator else 'qemu-aarch64'}")
        return NOT_RUN
    with tempfile.TemporaryDirectory() as folder:
        for name, array in zip(("query", "key", "value"), arrays(1)):
            numpy.save(f"{folder}/{name}.npy", array[0])
        files = [word for name in ("query", "key", "value", "out") for word in (f"--{name}", f"{folder}/{name}.npy")]
        command = [emulator, ARM_COMMAND, "attend", *files, "--causal"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print("rapt on ARM:", done.stderr.strip())
            return NOT_RUN
        return digest(numpy.load(f"{folder}/out.npy"))


def ways_of(name, library, cores):
    found = ask(name, library, 1, ["prefill", "batch", "decode"])
    if not found:
        return {}
    if cores > 1:
        found["threads"] = ask(name, library, cores, ["prefill"]).get("prefill", NOT_RUN)
    for way, switches in SWITCHES.items():
        if name in switches:
            found[way] = ask(name, library, 1, ["prefill"], switches[name]).get("prefill", NOT_RUN)
    if name == "rapt":
        found["arm"] = on_arm()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--json")
    parser.add_argument("--worker", choices=NAMES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ways", nargs="*")
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker, arguments.library, arguments.threads, arguments.ways)
        return
    found = {name: ways_of(name, arguments.library, len(os.sched_getaffinity(0))) for name in NAMES}
    for name, hashes in found.items():
        print(f"{name:12}", "  ".join(f"{way} {value[:8]}" for way, value in hashes.items()))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
