#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tests under AddressSanitizer with UBSan, and those with their own threads under ThreadSanitizer. ThreadSanitizer
# does not see how libgomp synchronises and would report every OpenMP region as a race; so that build has no OpenMP,
# and only the scalar kernels, since all tables run the same tasks. Debugging information is functions and lines (-g1):
# with variables, kernels take half as long again to compile. Clang instruments kernels in a third of GCC's time, and so
# all tests run with the code of a second compiler, on a second OpenMP.
set -euo pipefail
tools/dev/setup.sh sanitize
failed=0
if command -v clang-14 >/dev/null; then
    export CC=clang-14 CXX=clang++-14
fi
export RAPT_TEST_SCALE=${RAPT_TEST_SCALE-3}
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
export LSAN_OPTIONS="suppressions='$PWD/tools/dev/leaks.supp':print_suppressions=0" # quoted, for a space in it
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

# ThreadSanitizer's build runs beside the other, which does not keep all processors busy.
mkdir -p build-tsan
export CFLAGS=-g1
NINJA_ARGS='-j 1 programs_with_threads' tools/dev/build.sh build-tsan -Doptimization=1 -Ddebug=true \
    -Db_sanitize=thread -Db_lundef=false -Dassertions=true -Dopenmp=disabled -Disas=scalar >build-tsan/build.log 2>&1 &
tsan=$!

# Kernels that cannot run here are not compiled, which takes half of the time; ./dev test compiles all. Each program
# has all other kernels. The table of their checks, 20 MB, has as many bytes of relocations unless packed.
tools/dev/build.sh build-asan -Doptimization=1 -Ddebug=true -Disas="$(tools/dev/tables.sh here)" \
    -Db_sanitize=address,undefined -Db_lundef=false -Dassertions=true \
    '-Dc_link_args=-Wl,-z,pack-relative-relocs -Wl,--compress-debug-sections=zlib'
meson test -C build-asan --no-rebuild --print-errorlogs --timeout-multiplier 3 || failed=1

wait $tsan || { cat build-tsan/build.log >&2 && exit 1; }
rm -f build-tsan/meson-logs/testlog* # Meson writes none if it knows no name, and may leave out one of two
meson test -C build-tsan --no-rebuild --print-errorlogs --timeout-multiplier 3 threads examples || failed=1
python3 tools/dev/sum_tests.py tsan=build-tsan/meson-logs/testlog.json:threads:examples || failed=1
exit $failed
