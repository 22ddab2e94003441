# SPDX-License-Identifier: MIT
"""The tutorial script runs, the page's tables match the stored run, and its small examples work."""
import re
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace

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
    """All of the section on attention, block by block, with loops."""
    import rapt

    page = (TOP / "docs" / "python.md").read_text(encoding="utf-8").split("## Transformers")[0]
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    q, k, v = (random(2, heads, 9, 128) for heads in (32, 8, 8))
    names = {"logits": numpy.zeros(32), "q": q, "k": k, "v": v, "layers": [SimpleNamespace(q=-q, k=k, v=v)],
             "query": random(4, 32, 99, 128), "key": random(4, 8, 99, 128), "value": random(4, 8, 99, 128),
             "mask": numpy.ones((9, 9), bool), "bias": random(32, 9, 9)}
    expected = [rapt.attention(names["query"], names["key"], names["value"], causal=True), rapt.attention(q, k, v),
                rapt.attention(-q, k, v, causal=True)]
    for block, result in zip_longest(blocks, expected):
        exec(block, names)
        assert result is None or (names["out"] == result).all()
    assert len(blocks) == 4 and names["cache"].lengths.tolist() == [90, 90, 80, 70]
