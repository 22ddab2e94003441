#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# GCC and Clang warnings as errors, clang-tidy, compiler flags, style as far as a script can check it, analysis of the
# NEON loops.
set -euo pipefail
tools/dev/setup.sh lint
failed=0

# complain TEXT LINES: an empty list is no complaint.
complain() {
    [ -z "$2" ] || { printf 'lint: %s\n%s\n' "$1" "$2" >&2 && failed=1; }
}

sources() { find include src tools tests examples benchmarks integrations python \( "$@" \) -not -path '*/__pycache__/*'; }

echo "== GCC and Clang, warnings are errors"
# Parsed, not compiled: unoptimised, GCC takes four minutes for the largest kernels and finds no more; optimised, CI's
# build for the tests finds the rest. That build covers all but the benchmarks, so in CI GCC reads only these. Sources
# shared by several targets are left to clang-tidy for one of them, which reports Clang's warnings as well.
# read_all FOLDER all|others [PART]
read_all() {
    NINJA_ARGS=build.ninja tools/dev/build.sh "$1" -Dwerror=true -Dbenchmarks=enabled
    python3 tools/dev/commands.py "$@" | xargs -0 -P "$(nproc)" -n 1 sh -c || failed=1
}
CC=gcc CXX=g++ read_all build-lint-gcc all $([ "${CI-}" != true ] || echo /benchmarks/)
CC=clang-14 CXX=clang++-14 read_all build-lint-clang others

echo "== the header in C and C++"
use='#include "rapt/rapt.h"\nint main(void) { rapt_attention_desc desc = RAPT_ATTENTION_DESC_INIT; return (int)desc.batch; }\n'
for language in "c -std=c99" "c -std=c11" "c++ -std=c++11" "c++ -std=c++17" "c++ -std=c++20"; do
    printf "$use" | g++ -x $language -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only - || failed=1
done

echo "== the Python module"
python_headers=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')
if [ -e "$python_headers/Python.h" ]; then
    for compiler in gcc clang-14; do
        $compiler -std=c11 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Werror \
            -DRAPT_STATIC -Iinclude -isystem "$python_headers" -fsyntax-only python/src/*.c || failed=1
    done
else
    echo "== left out: the Python module, no Python.h"
fi

echo "== flags of the library"
flags=$(python3 - <<'PYTHON'
import json, re
for entry in json.load(open("build-lint-gcc/compile_commands.json")):
    if "/src/" in entry["file"] or entry["file"].startswith("../src/"):
        for flag in re.findall(r"-ffast-math|-Ofast|-march=\S+|-mcpu=\S+|-mtune=native|-ffp-contract=(?!off)\S+", entry["command"]):
            print(entry["file"], flag)
        if not re.search(r"-ffp-contract=off(?!.* -f(fp-contract|fast-math))", entry["command"]):
            print(entry["file"], "without -ffp-contract=off in the end")
PYTHON
) || failed=1
complain "the library is not to be built with:" "$flags"

echo "== style"
code=$(sources -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.def')
scripts=$(sources -name '*.sh' -o -name '*.py' -o -name meson.build)
complain "no SPDX line on top:" \
    "$(for f in dev .ci/run meson.build meson_options.txt pyproject.toml $code $scripts; do head -n 2 "$f" | grep -q 'SPDX-License-Identifier: MIT' || echo "$f"; done)"
complain "more than 350 lines:" "$(wc -l $code $scripts | awk '$1 > 350 && $2 != "total"')"
columns=$(sed -n 's/^ColumnLimit: //p' .clang-format)
complain "another line length than .clang-format:" "$(grep -nE 'max_line_length = [0-9]+' .editorconfig | grep -v "= $columns$" || true)"
complain "more than $columns columns:" "$(LC_ALL=C.UTF-8 grep -nE "^.{$((columns + 1))}" $code || true)"
prose=$(find . -name '*.md' -not -path './.*' -not -path './build*' -not -path './tests/data/*' -not -path './benchmarks/*')
complain "more than $columns columns, not in a table:" "$(LC_ALL=C.UTF-8 grep -nE "^[^|].{$columns}" $prose || true)"
# This project's pages and comments say instead: after, required, expected, last, cannot, per word.
avoided='can not|set out|behind|wanted|needed|the newest'
avoided+='|(numbers?|bytes?|lines?|floats?|operations?|divisions?|softmax|GFLOPS) an? (word|token|row|pair|score|core|head|key)'
complain "words to avoid (CONTRIBUTING.md, style):" \
    "$(grep -nwiE "$avoided" $prose $(sources -name '*.[ch]' | grep -E '^(include|src|examples)/') || true)"
complain "links to files that do not exist:" "$(for page in $prose; do
    grep -oE '\]\([^)#:]+' "$page" | cut -c 3- | while read -r file; do
        [ -e "$(dirname "$page")/$file" ] || echo "$page: $file"
    done
done)"
complain "tabs or spaces at the end:" "$(grep -nP '\t| +$' $code || true)"
places=$(python3 tools/dev/mutations.py --check) || failed=1
complain "mutations whose place has changed:" "$places"
complain "left over:" "$(grep -nE 'TODO|FIXME' $code || true)"

echo "== clang-tidy"
# tidy PATTERN [OPTION]: the files whose path matches.
once=$(python3 tools/dev/commands.py build-lint-clang once)
tidy() {
    grep -E "$1" <<<"$once" |
        xargs -P "$(nproc)" -n 4 clang-tidy-14 --quiet -p build-lint-clang/once "${@:2}" 2>/dev/null || failed=1
}
# The analyzer takes 3 seconds per file, all else a tenth of one: it checks only what users run, and in CI, where time
# is short, does not follow calls (mode=shallow).
depth=()
[ "${CI-}" != true ] || depth=(--extra-arg={-Xclang,-analyzer-config,-Xclang,mode=shallow})
tidy '^(include|src|tools)/' "${depth[@]}"
tidy '^(tests|examples|benchmarks)/' '--checks=-clang-analyzer-*'

if [ "${CI-}" = true ] || command -v aarch64-linux-gnu-gcc >/dev/null; then
    tools/dev/arm.sh analysis || failed=1
else
    echo "== left out: analysis of the NEON loops, no aarch64-linux-gnu-gcc (./dev setup arm)"
fi

[ $failed = 0 ] && echo "lint: ok"
exit $failed
