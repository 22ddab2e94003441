# SPDX-License-Identifier: MIT
"""How the library runs here."""
from typing import Any

from . import _core

__version__: str = _core.info()[0]


def info() -> dict[str, Any]:
    """Version, number of the order of operations, instruction set, CPU features, threads and their origin.

    threads_kind is "openmp" if the process has globally loaded an OpenMP (as PyTorch does), whose threads rapt uses;
    "pool" if rapt has its own threads; "fork" in a forked child, where one thread works.
    """
    names = ("version", "numerics", "isa", "cpu_features", "threads", "threads_kind", "isas")
    return dict(zip(names, _core.info()))
