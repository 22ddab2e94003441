#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs every test on this machine, on emulated older CPUs and on emulated ARM, and a minute of fuzzing, as far as the
# emulator, the cross compiler and Clang are installed; test.sh aarch64: on emulated ARM only. With CI=true a skipped
# run is a failure.
set -euo pipefail
export OMP_WAIT_POLICY=passive # many programs at once: spinning threads take cores from others
records=$(mktemp -d) # a line per run, done or skipped, also of background runs
touch "$records/logs" "$records/skipped"

has() { command -v "$1" >/dev/null; }

# run NAME FOLDER "PROGRAM ..." [meson test options]: all programs if none is named. Meson may skip a name that it does
# not know, and write no log if it knows none; sum_tests.py looks for each.
run() {
    echo
    echo "== tests on $1"
    rm -f "$2"/meson-logs/log-"$1"*
    meson test -C "$2" --no-rebuild --print-errorlogs --logbase "log-$1" "${@:4}" $3 || true
    echo "$1=$(find "$2"/meson-logs -name "log-$1*.json")${3:+:${3// /:}}" >>"$records/logs"
}

skip() { echo "$1: $2" >>"$records/skipped"; }

# run_emulated NAME QEMU_CPU ISAS: enough to reach every kernel of the tables and the command; the same code runs in
# full natively, and test_old_cpu checks which table other models choose.
run_emulated() {
    if ! has qemu-x86_64; then
        skip "$1" "no qemu-x86_64"
    else
        QEMU_CPU=$2 RAPT_EXPECT_ISAS=$3 RAPT_TEST_SCALE=2 run "$1" build \
            "check vectors environment legal golden command" --no-suite native --wrapper qemu-x86_64 \
            --timeout-multiplier 2
    fi
}

# In CI, where time is short, kernels that cannot run here are hardly optimised, which takes a third of the time.
run_here() {
    local options=()
    [ "${CI-}" != true ] || options=(-Dwerror=true -Drough_isas="$(tools/dev/tables.sh elsewhere)")
    tools/dev/build.sh build "${options[@]}"
    run native build ''
}

run_older() {
    if [ "$(uname -m)" = x86_64 ]; then
        run_emulated haswell Haswell scalar,avx2
        run_emulated nehalem Nehalem scalar
    fi
}

run_aarch64() {
    if [ "$(uname -m)" = aarch64 ]; then
        return # is native
    elif ! has aarch64-linux-gnu-gcc; then
        skip aarch64 "no aarch64-linux-gnu-gcc"
    elif ! has qemu-aarch64; then
        skip aarch64 "no qemu-aarch64"
    elif ! [ -e /usr/lib/aarch64-linux-gnu/pkgconfig/cmocka.pc ]; then
        skip aarch64 "no libcmocka-dev:arm64"
    else
        tools/dev/build.sh build-arm --cross-file cross/aarch64-linux-gnu.ini
        RAPT_EXPECT_ISAS=scalar,neon RAPT_TEST_SCALE=2 run aarch64 build-arm '' --no-suite native \
            --timeout-multiplier 2
    fi
}

# All targets at once, a minute in all, from a fixed seed, so that CI does not fail by chance. ./dev fuzz draws its own.
run_fuzz() {
    if ! tools/dev/fuzz.sh available; then
        skip fuzz "no clang-14 with libFuzzer"
    else
        echo
        echo "== fuzz"
        rm -f build-fuzz/log.json build-fuzz/log.junit.xml # of an earlier run
        RAPT_FUZZ_SEED=1 tools/dev/fuzz.sh 60 || true
        echo "fuzz=build-fuzz/log.json" >>"$records/logs"
    fi
}

# Beside the build and the tests here, which have priority but leave processors idle: builds the fuzz targets, then
# tests the Python package and what it connects to.
begin_beside() {
    {
        renice -n 5 -p "$BASHPID" >/dev/null || true
        ! tools/dev/fuzz.sh available || tools/dev/fuzz.sh build || true
        if tools/dev/python.sh available; then
            rm -f build-python/tests.xml # of an earlier run
            tools/dev/python.sh test || true
            echo "python=build-python/tests.xml" >>"$records/logs"
        else
            skip python "no build-python with PyTorch, Transformers and ONNX (./dev setup python)"
        fi
    } >"$records/beside" 2>&1 &
    beside_process=$!
}

end_beside() {
    wait $beside_process
    echo
    echo "== python"
    cat "$records/beside"
}

if [ "${1-}" = aarch64 ]; then
    run_aarch64
else
    begin_beside
    run_here
    end_beside
    run_older >"$records/older" 2>&1 & # mostly one program with one thread
    run_aarch64
    wait $!
    cat "$records/older"
    run_fuzz
fi
echo
elsewhere=$(tools/dev/tables.sh elsewhere)
[ -z "$elsewhere" ] || [ "${1-}" = aarch64 ] || echo "not here:  kernels of $elsewhere, which this machine cannot run, or does not choose"
arguments=()
while read -r line; do arguments+=("$line"); done < <(cat "$records/logs" && sed 's/^/--skipped=/' "$records/skipped")
rm -r "$records"
exec python3 tools/dev/sum_tests.py "${arguments[@]}"
