# SPDX-License-Identifier: MIT
"""python -m rapt info"""
import sys

from . import info


def main(arguments: list[str]) -> int:
    usage = "usage: python -m rapt info"
    if arguments in (["-h"], ["--help"]):
        print(usage)
        return 0
    if arguments != ["info"]:
        print(usage, file=sys.stderr)
        return 2
    for name, value in info().items():
        print(f"{name:13} {' '.join(value) if isinstance(value, list) else value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
