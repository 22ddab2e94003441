#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the version that include/rapt/rapt.h states."""
import pathlib
import re

header = (pathlib.Path(__file__).parents[2] / "include/rapt/rapt.h").read_text(encoding="utf-8")
print(".".join(re.search(rf"#define RAPT_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")))
