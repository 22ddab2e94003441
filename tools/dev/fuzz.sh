#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: fuzz.sh SECONDS [TARGET]: runs the fuzz targets of tests/fuzz side by side, with Clang's libFuzzer, AddressSanitizer and
# UBSan (leaks are checked only at the end, since a check takes longer than an input). They start from
# tests/fuzz/corpus and from what earlier runs found, in build-fuzz/corpus; RAPT_FUZZ_SEED=N repeats a run, or nearly.
# In CI, which has a seed, they end after a fixed number of inputs, so that a faster machine does not get further and
# fail where a slower one passed.
# fuzz.sh available: whether it can run; fuzz.sh build: only builds the targets.
set -euo pipefail
seconds=${1-} all=(descriptor states bindings append matmul layers npy safetensors)
targets=("${all[@]}")
[ $# -lt 2 ] || targets=("$2")

# libFuzzer reads non-numbers as 0, and 0 seconds as no limit.
if [ $# -gt 2 ] || ! [[ $seconds =~ ^([1-9][0-9]*|available|build)$ && " ${all[*]} " == *" ${2-descriptor} "* ]]; then
    echo "usage: ./dev fuzz SECONDS [$(IFS='|' && echo "${all[*]}")]" >&2
    exit 2
fi

available() {
    echo 'int LLVMFuzzerTestOneInput(const char *data, long bytes) { return data && bytes < 0; }' |
        clang-14 -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null
}

if [ "$seconds" = available ]; then
    available
    exit
fi
available || tools/dev/setup.sh fuzz

if ! [ -f build-fuzz/build.ninja ]; then
    CC=clang-14 meson setup build-fuzz -Dfuzz=true -Dopenmp=disabled -Doptimization=1 -Ddebug=true -Dpictures=disabled \
        -Db_sanitize=address,undefined -Db_lundef=false -Disas=avx2 '-Dc_args=-fsanitize=fuzzer-no-link -g1' >/dev/null
fi
ninja -C build-fuzz --quiet "${targets[@]/#/tests/fuzz/fuzz_}"

[ "$seconds" != build ] || exit 0

export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=32
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

declare -A most=([descriptor]=8000 [states]=40000 [bindings]=12000 [append]=12000 [matmul]=20000 [layers]=2500
    [npy]=1000000 [safetensors]=900000)

# libFuzzer learns from comparisons, also of addresses: repeating a run needs the same ones.
runs=-1 in_place=()
fixed=(setarch "$(uname -m)" -R)
[ -z "${RAPT_FUZZ_SEED-}" ] || ! "${fixed[@]}" true 2>/dev/null || in_place=("${fixed[@]}")

fuzz() {
    mkdir -p "build-fuzz/corpus/$1"
    [ "${CI-}" != true ] || [ -z "${RAPT_FUZZ_SEED-}" ] || runs=${most[$1]}
    "${in_place[@]}" build-fuzz/tests/fuzz/fuzz_"$1" -max_total_time="$seconds" -seed="${RAPT_FUZZ_SEED-0}" \
        -max_len=4096 -runs="$runs" -detect_leaks=0 -timeout=120 -rss_limit_mb=2000 -malloc_limit_mb=400 \
        -print_final_stats=1 \
        -artifact_prefix="build-fuzz/$1-" "build-fuzz/corpus/$1" "tests/fuzz/corpus/$1" >"build-fuzz/$1.log" 2>&1
}

for target in "${targets[@]}"; do
    fuzz "$target" &
    running[$!]=$target
done

# In Meson's format, for sum_tests.py.
failed=0
suites=
: >build-fuzz/log.json
for process in "${!running[@]}"; do
    target=${running[$process]}
    if wait "$process"; then
        result=OK failures=0
        echo "fuzz $target: $(awk '/number_of_executed_units/ { print $2 }' "build-fuzz/$target.log") inputs"
    else
        result=FAIL failures=1 failed=1
        tail -n 60 "build-fuzz/$target.log" >&2
        echo "fuzz $target: failed; again: build-fuzz/tests/fuzz/fuzz_$target build-fuzz/$target-crash-..." >&2
    fi
    echo '{"name": "fuzz_'"$target"'", "result": "'$result'"}' >>build-fuzz/log.json
    suites+='<testsuite name="rapt.fuzz_'"$target"'" tests="1" failures="'$failures'"/>'
done
echo "<testsuites>$suites</testsuites>" >build-fuzz/log.junit.xml
exit $failed
