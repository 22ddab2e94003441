# SPDX-License-Identifier: MIT
"""The tutorial script runs, the page's tables are those of the stored run, and its small examples work."""
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

TOP = Path(__file__).parents[2]


def test_tutorial(tmp_path):
    pytest.importorskip("transformers")
    out = tmp_path / "heads.png"
    script = [sys.executable, str(TOP / "examples" / "heatmaps.py"), "", "Heads look at words.", str(out)]
    text = subprocess.run(script, check=True, text=True, capture_output=True, timeout=100).stdout
    assert text.count("rows sum to 1.000000") == 4
    assert out.read_bytes().startswith(b"\x89PNG") and out.stat().st_size > 1000


def test_tables():
    check = [sys.executable, str(TOP / "benchmarks" / "python" / "python_tables.py"), "--check"]
    assert subprocess.run(check).returncode == 0


def test_examples_of_the_page(random):
    """Each line of the section on attention that calls rapt."""
    import rapt

    page = (TOP / "docs" / "python.md").read_text(encoding="utf-8").split("## Transformers")[0]
    lines = [line for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    names = {"rapt": rapt, "np": numpy, "logits": numpy.zeros(32), "layers": [],
             "q": random(2, 32, 9, 128), "k": random(2, 8, 9, 128), "v": random(2, 8, 9, 128),
             "query": random(4, 32, 99, 128), "key": random(4, 8, 99, 128), "value": random(4, 8, 99, 128),
             "mask": numpy.ones((9, 9), bool), "bias": random(32, 9, 9), "out": numpy.empty((2, 32, 9, 128), "f4")}
    ran = 0
    for line in lines:
        if "rapt" in line or "cache" in line:
            exec(line, names)
            ran += 1
            names["out"] = numpy.empty((2, 32, 9, 128), "f4")
    assert ran >= 12
