# SPDX-License-Identifier: MIT
"""Measures everything that README and docs/ state and stores it in one file: rapt_bench, the peers, the sweeps and the bits.

Leave the machine alone meanwhile. With --quick in three minutes, less steadily and without the largest rows."""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

import results

HERE = pathlib.Path(__file__).parent
QUICK_ROWS = "^(prefill/f32/d(64|128)/s(128|2048)/(full|causal)/isa|decode/f32/d128/kv32|extend.*g1/|many|tiny|peak)"


def cpu_name():
    names = re.findall(r"^model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M) \
        if os.path.exists("/proc/cpuinfo") else []
    name = names[0] if names else results.output("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    return " ".join(name.replace("(R)", "").replace("(TM)", "").replace("Processor", "").split())


def cpu_family():
    """As rapt_bench tells it; empty where there is none."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8") if os.path.exists("/proc/cpuinfo") else ""
    found = re.search(r"^cpu family\s*: (\d+)", text, re.M)
    return f"cpu family {found[1]}" if found else ""


def processor(isa):
    """With its best instruction set, as pictures and tables name it."""
    return f"{cpu_name()} ({isa.upper().replace('AVX', 'AVX-').replace('AVX-2', 'AVX2')})"


def path_here(isa):
    """Where the recording of this machine goes: beside that of another family, if its processor has the same name."""
    name = re.sub("[^a-z0-9]+", "-", processor(isa).lower()).strip("-")
    path = results.FOLDER / f"{name}-{len(os.sched_getaffinity(0))}-cores.json"
    here = results.family({"processor": cpu_family()})
    if not here or not path.exists() or results.family(json.loads(path.read_text(encoding="utf-8"))["machine"]) == here:
        return path
    return path.with_stem(f"{path.stem}-{here.replace(' ', '-')}")


def compiler(folder):
    """That of the build, as Meson noted it."""
    log = (folder / "meson-logs/meson-log.txt").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"^C compiler for the host machine: .*?\((.*?)(?: \"|$)", log, re.M)
    return found[1] if found else results.output("cc", "--version").partition("\n")[0]


def machine(folder, bench):
    context = bench["context"]
    caches = [f"L{cache['level']}{'' if cache['type'] == 'Unified' else ' ' + cache['type'].lower()} "
              f"{cache['size'] // 1024} KiB" for cache in context["caches"] if cache["type"] != "Instruction"]
    rows = [row["name"] for row in bench["benchmarks"]]
    isas = list(dict.fromkeys(re.search("isa:([a-z0-9]+)", name)[1] for name in rows if name.startswith("peak/fma/f32")))
    return {"cpu": processor(isas[0]), "processor": context.get("processor", ""),
            "cores": len(os.sched_getaffinity(0)), "caches": caches, "isas": isas, "memory": context.get("data", ""),
            "system": platform.platform(terse=True), "compiler": compiler(folder),
            "date": datetime.date.today().isoformat(),
            "commit": results.commit(),
            "rapt": context.get("rapt", ""), "openblas": context.get("peer", "")}


def noise(rows):
    """How far the machine was from quiet: what the peaks lost beside rows, and what other programs took."""
    fma = {}
    for row in rows:
        if row["name"].startswith("peer") or "peak_gflops" not in row:
            continue
        of_parts = "/order3/" in row["name"]  # held against FMAs on the matrix unit, too
        fma.setdefault((row["name"].split("isa:")[-1], of_parts), []).append(row["peak_gflops"])
    stream = [row["stream_gbps"] for row in rows if row["name"].startswith("decode") and row["name"].endswith("t1")]
    lost = [1 - min(rates) / max(rates) for rates in fma.values() if max(rates)]
    return {"fma_peak_lost": results.brief(max(lost, default=0.0)),
            "stream_peak_lost": results.brief(1 - min(stream) / max(stream)) if stream else None,
            "median_spread": results.brief(statistics.median(row["spread"] for row in rows if "spread" in row)),
            "rows_disturbed": sum(row.get("processor_share", 1) < 0.9 for row in rows)}


def run(*command):
    print(" ".join(map(str, command)), flush=True)
    subprocess.run([str(part) for part in command], check=True)


def measure(folder, quick, into):
    """The three JSON files of the programs, and the bits."""
    library = folder / "benchmarks/librapt_call.so"
    python = [sys.executable]
    paths = {name: into / (name + ".json") for name in ("bench", "peers", "sweep", "bits")}
    run(folder / "benchmarks/rapt_bench", "--json", paths["bench"], "--seconds", 0.1 if quick else 1,
        "--benchmark_filter=" + (QUICK_ROWS if quick else ""))
    run(*python, HERE / "bits.py", "--library", library, "--json", paths["bits"])
    run(*python, HERE / "peers.py", "--library", library, "--json", paths["peers"],
        *(["--quick"] if quick else ["--seconds", 4]))
    run(*python, HERE / "sweep.py", "--library", library, "--json", paths["sweep"], "--seconds", 0.03 if quick else 0.35)
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items()}


def main():
    parser = argparse.ArgumentParser(prog="./dev bench record", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default="build-bench", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="three minutes instead of twelve")
    parser.add_argument("--into", type=pathlib.Path, help="default: benchmarks/results/PROCESSOR.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        taken = measure(arguments.build, arguments.quick, pathlib.Path(folder))
    about = machine(arguments.build, taken["bench"])
    about["peers"], about["effort"] = taken["peers"]["context"]["peers"], "quick" if arguments.quick else "full"
    for name in ("stream_gbps", "fma_gflops"):
        about[name] = taken["sweep"]["context"][name]
    rows = {name: [row for row in map(results.compact, taken[name]["benchmarks"]) if row]
            for name in ("bench", "peers", "sweep")}
    path = arguments.into or path_here(about["isas"][0])
    path.parent.mkdir(parents=True, exist_ok=True)
    results.save(path, {"machine": about, "noise": noise(rows["bench"]), "bits": taken["bits"], **rows})
    print(path)


if __name__ == "__main__":
    main()
