#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ARM without ARM hardware: whether the library compiles for macOS and Windows, what llvm-mca predicts for the NEON
# inner loops, and, except for `arm.sh analysis`, all tests under qemu-user.
set -euo pipefail
case $* in
'' | analysis) ;;
*) echo "usage: ./dev arm [analysis]" >&2 && exit 2 ;;
esac
tools/dev/setup.sh arm

echo "== compiled, not run, for other systems"
# In CI, where time is short, Clang only parses the sources.
code=-c
[ "${CI-}" != true ] || code=-fsyntax-only
sources=$(find src -name '*.c' -not -path 'src/x86/*' -not -path 'src/reference/*')
for source in $sources; do # both targets of a source at once
    printf '%s\n' "arm64-apple-macos11 $source" "aarch64-pc-windows-msvc $source"
done | xargs -P "$(nproc)" -L 1 sh -c 'exec clang-19 -target $0 -std=c11 -O2 -ffreestanding -nostdlibinc -fno-math-errno \
    -ffp-contract=off -DRAPT_HAVE_neon -DRAPT_BUILD -Wall -Wextra -Werror -isystem cross/freestanding -Iinclude -Isrc \
    '$code' "$1" -o /dev/null'
echo "arm64-apple-macos11, aarch64-pc-windows-msvc: $(wc -w <<<"$sources") objects each"

echo
echo "== share of the FMA peak that llvm-mca expects of the NEON inner loops"
tools/dev/build.sh build-arm --cross-file cross/aarch64-linux-gnu.ini
objects=(build-arm/src/librapt_kernels_neon.a.p/*.o)
python3 tools/dev/mca.py "${objects[0]}" score_wide_full weigh_wide_2 weigh_wide_3 product_full

[ "${1-}" = analysis ] || exec tools/dev/test.sh aarch64
