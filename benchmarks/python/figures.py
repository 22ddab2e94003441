# SPDX-License-Identifier: MIT
"""Puts the figures of a recording where they are stated: tables and prose of README.md and docs/, pictures in docs/pictures.

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`, a figure in prose between `<!--NAME-->` and
`<!---->`. --check changes nothing, needs nothing but Python, and fails where a figure is not that of the recording, where a
picture was drawn from another one, or where README states a figure of speed that is not marked."""
import argparse
import re
import sys

import machine_tables
import prose
import results
import tables
import unit_tables

TABLES = {**tables.TABLES, "units": unit_tables.units, "unit_decode": unit_tables.unit_decode,
          "unit_parts": unit_tables.unit_parts, "unit_peers": unit_tables.unit_peers, "all_machines": machine_tables.all_machines}
FILES = ("README.md", "docs/performance.md",
         *sorted(f"docs/performance/{path.name}" for path in (results.ROOT / "docs/performance").glob("*.md")))
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.S)
FIGURE = re.compile(r"(<!--([a-z0-9-]+)-->).*?(<!---->)", re.S)
# What states a speed: 88 %, 1.4 ×, 1.4x, 20 GFLOPS, 3 GB/s, 1.2 ms
SPEED = re.compile(r"\d\s*(?:%|×|x as|GFLOPS?\b|GFLOP/s|GB/s|[mµ]s\b|times\b)")
# Lines of README that state another kind of figure.
NOT_MEASURED = re.compile(r"llvm-mca|static analysis|inner loops|NEON|\berrors?\b")


def repeated_labels(table):
    """Rows that one cannot tell apart; "the same, ..." goes on from the row above it."""
    seen, named = set(), ""
    for line in table.splitlines()[2:]:
        label = line.split("|")[1].strip()
        named = named if label.startswith("the same") else label
        if (named, label) in seen:
            yield label
        seen.add((named, label))


def filled(text, found, complaints):
    values = prose.figures(found)

    def fill_table(match):
        if match[2] not in TABLES:
            complaints.append(f"there is no table '{match[2]}'")
            return match[0]
        table = TABLES[match[2]](found)
        complaints.extend(f"table '{match[2]}': two rows are named '{label}'" for label in repeated_labels(table))
        return f"{match[1]}{table}\n{match[3]}"

    def fill_figure(match):
        if match[2] not in values:
            complaints.append(f"there is no figure '{match[2]}'")
            return match[0]
        return match[1] + values[match[2]] + match[3]

    return FIGURE.sub(fill_figure, TABLE.sub(fill_table, text))


def loose_figures(text):
    """Speeds in README that are neither marked nor in a code block."""
    bare = re.sub(r"^(```.*?^```|(?: {4}|\t).*?$)", "", FIGURE.sub("", TABLE.sub("", text)), flags=re.S | re.M)
    return [line.strip() for line in bare.splitlines() if SPEED.search(line) and not NOT_MEASURED.search(line)]


def check_texts(found, write):
    complaints = []
    for name in FILES:
        path = results.ROOT / name
        text = path.read_text(encoding="utf-8")
        expected = filled(text, found, complaints)
        if write:
            path.write_text(expected, encoding="utf-8")
        else:
            pairs = zip(text.splitlines(), expected.splitlines())
            complaints += [f"{name}: states\n    {old}\nand the recording says\n    {new}" for old, new in pairs if old != new]
            if len(text.splitlines()) != len(expected.splitlines()):
                complaints.append(f"{name}: a table has other rows than the recording")
    complaints += [f"README.md: not marked as a figure of the recording: {line}"
                   for line in loose_figures((results.ROOT / "README.md").read_text(encoding="utf-8"))]
    return complaints


def check_pictures(found):
    complaints = []
    for path in sorted((results.ROOT / "docs/pictures").glob("*.svg")):
        if path.stem == "types":  # drawn by type_errors.py, and checked by the test `types`
            continue
        source = found.source(path.stem)
        if f"<dc:source>{source}</dc:source>" not in path.read_text(encoding="utf-8"):
            complaints.append(f"{path.relative_to(results.ROOT)} was not drawn from {source}")
    return complaints


def main():
    parser = argparse.ArgumentParser(prog="./dev bench figures", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="as the test `figures` does")
    parser.add_argument("--only", help="one picture, and nothing else")
    arguments = parser.parse_args()
    if arguments.check and arguments.only:
        parser.error("--only draws a picture, --check draws none")
    if not arguments.check:
        import pictures  # needs Matplotlib
        if arguments.only and arguments.only not in pictures.PICTURES:
            parser.error(f"there is no picture '{arguments.only}': {', '.join(pictures.PICTURES)}")
    found = results.only_results()
    complaints = []
    if not arguments.only:
        complaints = check_texts(found, not arguments.check)
    if arguments.check:
        complaints += check_pictures(found)
    else:
        pictures.draw_all(found, results.ROOT / "docs/pictures", arguments.only)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if arguments.check:
        print("1..1\n" + ("not ok" if complaints else "ok") + " 1 - figures of README, docs and pictures are the recording's")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
