# SPDX-License-Identifier: MIT
"""What storage types of keys and values cost: errors of `rapt attend --kv-type` on a real model's data, against double
of the numbers that were given. They are the same on every machine, so --check, the test `types`, computes them again.

Writes benchmarks/results/types.json, the table of docs/types.md and docs/pictures/types.svg. --check needs nothing but
Python and compares."""
import argparse
import array
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import results

DATA = results.ROOT / "tests/data/minilm"
STORED = results.FOLDER / "types.json"
PAGE, PICTURE = results.ROOT / "docs/types.md", results.ROOT / "docs/pictures/types.svg"
HEAD_DIM = 32  # of this model
LAYERS = {"first_layer": "first layer", "last_layer": "last layer"}
PARTS = {"kv": "keys and values", "key": "keys alone", "value": "values alone"}
TABLE = re.compile(r"(<!-- table: types -->\n).*?(<!-- end of table -->)", re.S)


def read_npy(path):
    """A list of numbers and the length of a row."""
    data = path.read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    header = data[10:begin].decode()
    numbers = array.array("d" if "<f8" in header else "f", data[begin:])
    shape = re.search(r"'shape': \(([0-9, ]+)\)", header)[1]
    return numbers, int([size for size in shape.split(",") if size.strip()][-1])


def types():
    """Name -> bits of an element, for keys and values; with the float32 scale of a row where they have scales."""
    text = (results.ROOT / "src/format.def").read_text(encoding="utf-8")
    found = re.findall(r'^RAPT_FORMAT\((\w+), \w+, "\w+", (\d+), (\d+), \d+, .*KEY_VALUE(.*)\)', text, re.M)
    sizes = {name: 8 * int(size) / int(elements) + ("MAY_SCALE" in uses) * 32 / HEAD_DIM
             for name, elements, size, uses in found}
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def errors(rapt, layer, options):
    """Root of the mean square, and largest, of the errors relative to the largest |out| of the row."""
    folder = DATA / layer
    with tempfile.TemporaryDirectory() as made:
        out = pathlib.Path(made) / "out.npy"
        inputs = [word for name in ("query", "key", "value") for word in ("--" + name, folder / f"{name}.npy")]
        subprocess.run([*rapt, "attend", *map(str, inputs), "--out", str(out), "--quiet", *options], check=True)
        got, dim = read_npy(out)
    exact, _ = read_npy(folder / "out64.npy")
    relative = []
    for i in range(0, len(exact), dim):
        largest = max(map(abs, exact[i:i + dim]))
        relative += [abs(a - b) / largest for a, b in zip(got[i:i + dim], exact[i:i + dim])]
    return math.sqrt(sum(x * x for x in relative) / len(relative)), max(relative)


def measure(rapt):
    rows = []
    for name, bits in types().items():
        row = {"type": name, "bits": bits}
        for layer in LAYERS:
            for part in PARTS:
                rms, largest = errors(rapt, layer, [f"--{part}-type", name])
                row |= {f"{layer}_{part}_rms": float(f"{rms:.2g}"), f"{layer}_{part}_max": float(f"{largest:.2g}")}
        rows.append(row)
    return rows


def table(rows):
    head = ["type", "bits of an element", "of float32"]
    head += [f"{title}: rms, largest" for title in LAYERS.values()]
    head += [f"{PARTS[part]}, rms" for part in ("key", "value")]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        line = [f"`{row['type']}`", f"{row['bits']:g}", f"{100 * row['bits'] / 32:.3g} %"]
        line += [f"{row[layer + '_kv_rms']:.1e}, {row[layer + '_kv_max']:.1e}" for layer in LAYERS]
        lines.append(line + [f"{row[f'first_layer_{part}_rms']:.1e}" for part in ("key", "value")])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def draw(rows, path, digest):
    import matplotlib.pyplot as plt
    import pictures  # needs Matplotlib
    pictures.set_style()
    figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
    for number, (layer, title) in enumerate(LAYERS.items()):
        for y, row in enumerate(rows):
            rms, largest, place = row[f"{layer}_kv_rms"], row[f"{layer}_kv_max"], y + (number - 0.5) * 0.3
            axes.plot([rms, largest], [place, place], color=f"C{number}", linewidth=1.5,
                      label=None if y else title)
            axes.plot([rms], [place], "o", [largest], [place], "^", color=f"C{number}", markersize=7)
    axes.plot([], [], "o", color="black", markersize=7, label="root of the mean square")
    axes.plot([], [], "^", color="black", markersize=7, label="largest error")
    axes.set_yticks(range(len(rows)), [f"{row['type']}, {row['bits']:g} bits" for row in rows])
    axes.set(xscale="log", ylim=(len(rows) - 0.5, -0.5), xlabel="error of out, relative to the largest |out| of the row")
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower left")
    source = {"Date": None, "Source": f"{STORED.name} {digest}"}
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata=source)


def check(rows):
    complaints = []
    stored = json.loads(STORED.read_text(encoding="utf-8"))["types"]
    if stored != rows:
        differ = [f"{STORED.name} has {old}, rapt gives {new}" for old, new in zip(stored, rows) if old != new]
        complaints += differ or [f"{STORED.name} has {len(stored)} types, rapt {len(rows)}"]
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))
    if not found or found[0] != found[1] + table(stored) + found[2]:
        complaints.append(f"{PAGE.name} does not have the table of {STORED.name}")
    if f"{STORED.name} {results.digest_of(STORED)}" not in PICTURE.read_text(encoding="utf-8"):
        complaints.append(f"{PICTURE.name} was not drawn from {STORED.name} as it is now")
    for complaint in complaints:
        print(complaint + " (./dev bench types)", file=sys.stderr)
    print("1..1\n" + ("not ok" if complaints else "ok") + " 1 - the errors of storage types are those of docs/types.md")
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser(prog="./dev bench types", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rapt", required=True, nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help="as the test `types` does")
    arguments = parser.parse_args()
    rows = measure(arguments.rapt)
    if arguments.check:
        return check(rows)
    results.save(STORED, {"data": "tests/data/minilm", "types": rows})
    text = TABLE.sub(lambda found: found[1] + table(rows) + found[2], PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    draw(rows, PICTURE, results.digest_of(STORED))
    return 0


if __name__ == "__main__":
    sys.exit(main())
