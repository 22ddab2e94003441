#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: bench.sh peers|accuracy|sweep|record|figures|ab|slots [arguments]: what is not rapt_bench alone. All but ab, slots and
# figures --check need packages from PyPI.
set -euo pipefail
verb=$1
shift
python=build-python/bin/python

# install PACKAGE...: into build-python, those that are missing; what fails is said, and the rest goes on.
# PyTorch's own index has wheels without CUDA; where it is not reached, those of PyPI do, at a few GB.
install() {
    local package cpu_wheels
    [ -x $python ] || { tools/dev/setup.sh bench >&2 && python3 -m venv build-python; }
    for package in "$@"; do
        ! $python -c "import sys, importlib.util; sys.exit(importlib.util.find_spec('$package') is None)" || continue
        echo "bench: installing $package into build-python"
        cpu_wheels=https://download.pytorch.org/whl/cpu
        [ "$package" = torch ] && curl -sfo /dev/null --max-time 10 $cpu_wheels/torch/ || cpu_wheels=
        $python -m pip install -q ${cpu_wheels:+--extra-index-url $cpu_wheels} "$package" ||
            echo "bench: $package could not be installed" >&2
    done
}

build() {
    tools/dev/setup.sh bench
    tools/dev/build.sh build-bench -Dbenchmarks=enabled -Dtests=disabled -Dtools=disabled
}

run() {
    exec $python "benchmarks/python/$verb.py" "$@"
}

case $verb in
peers)
    install numpy torch onnx onnxruntime openvino
    build
    run --library build-bench/benchmarks/librapt_call.so "$@"
    ;;
accuracy)
    install numpy torch
    build
    run --library build-bench/benchmarks/librapt_call.so "$@"
    ;;
sweep)
    install numpy
    build
    run --library build-bench/benchmarks/librapt_call.so "$@"
    ;;
slots)
    build >&2
    exec build-bench/benchmarks/rapt_slots "$@"
    ;;
ab)
    exec python3 benchmarks/python/ab.py "$@"
    ;;
record)
    install numpy torch onnx onnxruntime openvino matplotlib
    build
    case " $* " in *" -h "* | *" --help "*) run "$@" ;; esac
    $python benchmarks/python/record.py "$@"
    verb=figures
    run
    ;;
figures)
    case " $* " in *" --check "*) exec python3 benchmarks/python/figures.py "$@" ;; esac
    install matplotlib
    run "$@"
    ;;
esac
