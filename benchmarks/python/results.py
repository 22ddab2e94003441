# SPDX-License-Identifier: MIT
"""What ./dev bench record stored: benchmarks/results/*.json, one file for a machine. Times and rates are medians; `spread` is
the distance between the quartiles as a share of the median. Needs nothing but Python."""
import hashlib
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks/results"
# Of the counters of benchmarks/README.md those that are medians or say what was run; the suffix goes.
MEDIANS = ("of_peak", "of_stream", "of_limit", "of_copy", "cost", "speedup", "of_parts", "of_contiguous",
           "versus_heads", "rapt_speedup", "rapt_speedup_whole", "microseconds")
KEPT = ("spread", "samples", "peak_gflops", "stream_gbps", "processor_share", "label", "sweep", "isa", "rapt_threads",
        "head_dim", "query_length", "kv_length", "heads", "group", "batch", "window", "causal")

NO_COMMIT = "unknown"


def output(*command):
    """What a program prints, in the folder of this repository; empty where it fails or is not installed."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit():
    """The last one; "+" says that the working tree has other code. An archive of the sources knows none."""
    name = output("git", "describe", "--always", "--exclude=*")
    changed = output("git", "status", "--porcelain", "--untracked-files=no", "--", "src", "include", "benchmarks")
    return name + "+" if changed else name or NO_COMMIT


def brief(value):
    return float(f"{value:.4g}") if isinstance(value, float) else value


def compact(entry):
    """A row as it is stored, from one of Google Benchmark's form; None where it did not run."""
    if entry.get("error_occurred") or "median_ms" not in entry:
        return None
    row = {"name": entry["name"], "ms": entry["median_ms"]}
    to_median = 1 if entry["name"].startswith("peak/") else entry["real_time"] / entry["median_ms"]
    for rate in ("gflops", "gbps"):  # those of the benchmarks are of the best run; of a peak that is what counts
        if rate in entry:
            row[rate] = entry[rate] * to_median
    row |= {name: entry[name + "_median"] for name in MEDIANS if name + "_median" in entry}
    row |= {name: entry[name] for name in KEPT if name in entry}
    return {name: brief(value) for name, value in row.items()}


def save(path, parts):
    """One row a line, so that two recordings can be compared by eye."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n")
        for i, (name, value) in enumerate(parts.items()):
            end = ",\n" if i < len(parts) - 1 else "\n"
            if isinstance(value, list):
                lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
                file.write(f' "{name}": [\n  {lines}\n ]{end}')
            else:
                file.write(f' "{name}": {json.dumps(value, indent=2, ensure_ascii=False)}{end}')
        file.write("}\n")


def family(machine):
    """What tells processors of one name apart, as virtual machines state it."""
    found = re.search(r"cpu family (\d+)", machine.get("processor", ""))
    return f"family {found[1]}" if found else ""


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


class Results:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.parts = json.loads(self.path.read_text(encoding="utf-8"))
        self.machine, self.noise = self.parts["machine"], self.parts["noise"]
        self.bench = {row["name"]: row for row in self.parts["bench"]}
        self.peers, self.sweep, self.bits = (self.parts[name] for name in ("peers", "sweep", "bits"))
        self.names = self.machine["isas"]  # best first
        other = types_path(self.path)
        types = json.loads(other.read_text(encoding="utf-8")) if other.exists() else {"machine": {}, "peers": []}
        self.types_machine, self.types = types["machine"], {row["name"]: row for row in types["peers"]}
        other = units_path(self.path)
        units = json.loads(other.read_text(encoding="utf-8"))["benchmarks"] if other.exists() else []
        self.units = {row["name"]: row for row in map(compact, units) if row}

    def type_row(self, name):
        """Of ./dev bench peers --types; of rapt where no peer is named."""
        return self.types.get(name if name.startswith("peer:") else name.replace("/t", f"/isa:{self.names[0]}/t"))

    def row(self, name):
        """By the name of rapt_bench; @1 and @2 stand for the best instruction set and the next."""
        for number, isa in enumerate(self.names, 1):
            name = name.replace(f"@{number}", f"isa:{isa}")
        return self.bench.get(name)

    def source(self, picture):
        """The files that a picture is drawn from, with their digests, as the picture names them."""
        beside = [path_of(self.path) for path_of in DRAWN_FROM.get(picture, ())]
        return ", ".join(f"{path.name} {digest_of(path)}" for path in (self.path, *beside) if path.exists())

    @property
    def title(self):
        """The machine in a few words, for pictures."""
        return f"{self.machine['cpu']}, {self.machine['cores']} cores, {self.machine['date']}"


def types_path(path):
    """Where ./dev bench peers --types --store keeps its rows."""
    return path.with_name(path.stem + "-types.json")


def units_path(path):
    """What ./dev bench --json was given with --benchmark_filter='order[23]'."""
    return path.with_name(path.stem + "-units.json")


# Which pictures are drawn from more than the recording itself.
DRAWN_FROM = {"peers-units": [types_path], "roofline": [units_path]}


def machines(found):
    """The one that README and docs/ are made from, and then the others."""
    others = [path for path in sorted(FOLDER.glob("*.json")) if path != found.path
              and "bench" in json.loads(path.read_text(encoding="utf-8"))]
    return [found, *map(Results, others)]


def heads(every):
    """Their names, told apart."""
    names = [machine.machine["cpu"] for machine in every]
    return [f"{name}, {family(machine.machine)}" if names.count(name) > 1 else name
            for name, machine in zip(names, every)]


def only_results():
    """The file that README and docs/ are made from: docs/performance.md names it."""
    for line in (ROOT / "docs/performance.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("<!-- results: "):
            return Results(ROOT / line.split()[2])
    raise SystemExit("docs/performance.md names no file of benchmarks/results")
