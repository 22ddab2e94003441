#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: ggml.sh [build|test|perf|model|sanitize] [arguments of bars.py or model.py in integrations/ggml]
# ggml's own sources, tests and benchmarks, with rapt as its backend; without arguments everything (half an hour, longer
# the first time, to compile ggml). All of it is in build-ggml/, the backend in build-ggml/rapt/integrations/ggml/.
set -euo pipefail
package=llama-cpp-python version=0.3.36 # its source distribution carries llama.cpp with ggml and its tests
folder=$PWD/build-ggml
llama=$folder/${package//-/_}-$version/vendor/llama.cpp
bin=$folder/out/bin
python=$folder/python/bin/python
backend=$folder/rapt/integrations/ggml/libggml-rapt.so

download() {
    [ -e "$llama/ggml/CMakeLists.txt" ] && return
    mkdir -p "$folder"
    [ -x "$python" ] || python3 -m venv "$folder/python"
    "$python" -m pip download -q --no-deps --no-binary :all: -d "$folder" $package==$version
    tar -xzf "$folder/${package//-/_}-$version.tar.gz" -C "$folder"
}

# This machine's instructions, as ggml's options. With dynamic backends it takes no -march=native.
cpu_options() {
    case $(uname -m) in
    x86_64)
        local flag
        for flag in sse4_2:SSE42 avx:AVX f16c:F16C fma:FMA bmi2:BMI2 avx2:AVX2 avx512bw:AVX512 avx512vbmi:AVX512_VBMI \
            avx512_vnni:AVX512_VNNI avx512_bf16:AVX512_BF16 amx_tile:AMX_TILE amx_int8:AMX_INT8; do
            grep -qw "${flag%:*}" /proc/cpuinfo && echo "-DGGML_${flag#*:}=ON" || echo "-DGGML_${flag#*:}=OFF"
        done
        ;;
    aarch64) echo -DGGML_CPU_ARM_ARCH=native ;;
    esac
}

build_ggml() {
    local launcher=
    ! command -v ccache >/dev/null || launcher=ccache
    [ -e "$folder/out/build.ninja" ] || cmake -S "$llama" -B "$folder/out" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON -DGGML_NATIVE=OFF $(cpu_options) -DLLAMA_BUILD_TESTS=OFF \
        -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DCMAKE_C_COMPILER_LAUNCHER=$launcher \
        -DCMAKE_CXX_COMPILER_LAUNCHER=$launcher >"$folder/cmake.log"
    ninja -C "$folder/out" --quiet ggml-base ggml ggml-cpu
    # Alone it needs only ggml; llama.cpp's own build would compile all of llama.cpp for it.
    [ "$bin/test-backend-ops" -nt "$bin/libggml.so" ] || c++ -std=c++17 -O2 -DNDEBUG -pthread -I "$llama/ggml/include" \
        "$llama/tests/test-backend-ops.cpp" -o "$bin/test-backend-ops" -L "$bin" -lggml -lggml-base -Wl,-rpath,'$ORIGIN'
}

build_backend() {
    [ -e "$folder/rapt/build.ninja" ] || meson setup "$folder/rapt" -Dggml="$llama/ggml" -Dggml_libraries="$bin" \
        -Dtools=disabled >"$folder/meson.log"
    ninja -C "$folder/rapt" --quiet integrations/ggml/libggml-rapt.so integrations/ggml/test_ggml
}

# Whole models; the package that writes a random one is beside ggml.
run_model() {
    ninja -C "$folder/out" --quiet llama-bench llama-perplexity llama-completion
    "$python" -c "import numpy, yaml, tqdm, requests" 2>/dev/null || "$python" -m pip install -q numpy pyyaml tqdm requests
    PYTHONPATH=$llama/gguf-py "$python" integrations/ggml/model.py "$bin" "$backend" "$folder" "$@"
}

# The backend's own tests under AddressSanitizer and UBSan; ggml itself is not instrumented, and keeps what it allocated.
run_sanitized() {
    [ -e "$folder/asan/build.ninja" ] || meson setup "$folder/asan" -Dggml="$llama/ggml" -Dggml_libraries="$bin" \
        -Dtools=disabled -Doptimization=1 -Ddebug=true -Db_sanitize=address,undefined -Db_lundef=false \
        -Dassertions=true >"$folder/asan.log"
    ninja -C "$folder/asan" --quiet integrations/ggml/libggml-rapt.so integrations/ggml/test_ggml
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1 \
        meson test -C "$folder/asan" --no-rebuild --print-errorlogs --timeout-multiplier 5 ggml
}

what=${1-all}
shift || true
case $what in
build | sanitize) [ $# = 0 ] || what=none ;;
esac
case $what in
build | test | perf | model | sanitize | all) ;;
*) echo "usage: ./dev ggml [build|test|perf|model|sanitize]" >&2 && exit 2 ;;
esac
tools/dev/setup.sh ggml
download
build_ggml
build_backend
case $what in
build) echo "$backend" ;;
test | perf) exec python3 integrations/ggml/bars.py "$bin" "$backend" --only "$what" "$@" ;;
model) run_model "$@" ;;
sanitize) run_sanitized ;;
all)
    meson test -C "$folder/rapt" --no-rebuild ggml
    run_model
    exec python3 integrations/ggml/bars.py "$bin" "$backend" "$@"
    ;;
esac
