#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: python.sh [build|test|wheel|bench] [arguments]: the Python package (docs/python.md), in the venv build-python.
# build installs it there, test runs tests/python, wheel makes the wheels of this machine and of ARM in build-wheels,
# bench measures Transformers and calls, and stores what it finds. Without arguments: build and test.
set -euo pipefail
python=$PWD/build-python/bin/python

# Whether they are installed; loading them takes seconds.
has_packages() {
    local all_found='import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))'
    [ -x "$python" ] && "$python" -c "$all_found" numpy onnx pytest torch transformers
}

# Incremental, with the tools of the venv. In CI the build is hardly optimised, and has only two kernel tables on x86,
# which takes a third of the time: the library's tests have them optimised, the package's tests check what surrounds
# them. Flags go as a Meson option, which each build sets anew: Meson reads CFLAGS only the first time, so a build to
# measure would keep those of CI.
build() {
    local flags=${CFLAGS-} tables=auto
    [ "${CI-}" != true ] || flags='-Og -DRAPT_PLAIN_LOOPS'
    [ "${CI-}" != true ] || [ "$(uname -m)" != x86_64 ] || tables=avx2
    tools/dev/setup.sh python
    PATH=${python%/*}:$PATH "$python" -m pip install -q --no-deps --no-build-isolation --force-reinstall \
        --config-settings=build-dir=build-python/build --config-settings=setup-args=-Disas="$tables" \
        --config-settings=setup-args=-Dc_args="$flags" .
}

# The JUnit file is for sum_tests.py. Few threads, since many programs run at once.
run_tests() {
    rm -f build-python/tests.xml
    OMP_NUM_THREADS=2 "$python" -m pytest -q --junit-xml="$PWD/build-python/tests.xml" tests/python "$@"
}

verb=${1-}
shift || true
case $verb in
build | wheel) [ $# = 0 ] || verb=none ;;
esac
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
