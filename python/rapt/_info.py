# SPDX-License-Identifier: MIT
"""How the library runs here."""
from typing import Any

from . import _core

__version__: str = _core.info()[0]


def info() -> dict[str, Any]:
    """Version, number of the order of operations, instruction set, CPU features, threads and where they come from.

    threads_kind is "openmp" where the process has an OpenMP that everybody sees (PyTorch loads one), whose threads rapt
    takes; "pool" where rapt has threads of its own; "fork" in the child of a fork, where one thread works.
    """
    names = ("version", "numerics", "isa", "cpu_features", "threads", "threads_kind", "isas")
    return dict(zip(names, _core.info()))
