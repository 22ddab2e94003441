#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: python.sh [build|test|wheel|bench] [arguments]: the Python package (docs/python.md), in the venv build-python.
# build installs it there, test runs tests/python, wheel makes the wheels of this machine and of ARM in build-wheels,
# bench measures Transformers and calls, and stores what it finds. Without arguments: build and test.
set -euo pipefail
python=$PWD/build-python/bin/python

has_packages() { [ -x "$python" ] && "$python" -c 'import numpy, onnx, pytest, torch, transformers' 2>/dev/null; }

# What was compiled last time is kept, and the tools are those of the venv.
build() {
    tools/dev/setup.sh python
    PATH=${python%/*}:$PATH "$python" -m pip install -q --no-deps --no-build-isolation --force-reinstall \
        -Cbuild-dir=build-python/build .
}

# The package's tests; the JUnit file is for sum_tests.py. Few threads, since many programs run at once.
run_tests() {
    rm -f build-python/tests.xml
    OMP_NUM_THREADS=2 "$python" -m pytest -q --junit-xml="$PWD/build-python/tests.xml" tests/python "$@"
}

verb=${1-}
shift || true
case $verb in
available) has_packages ;;
build) build ;;
"" | test)
    build
    run_tests "$@"
    ;;
wheel)
    tools/dev/setup.sh python
    exec tools/dev/wheels.sh "$@"
    ;;
bench)
    build
    exec "$python" benchmarks/python/transformers_speed.py "$@"
    ;;
*) echo "usage: ./dev python [build|test|wheel|bench]" >&2 && exit 2 ;;
esac
