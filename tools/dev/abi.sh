#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: abi.sh [COMMIT]: does the working tree break programs built for a commit, by default the last release?
# libabigail's abidiff compares the shared libraries and the types of their public headers, numbers.py what abidiff
# ignores: enumerators, macros, and members of structs that may grow. Fails if something that programs use changed under
# the same soname; additions are printed.
set -euo pipefail
[ $# -lt 2 ] || { echo "usage: ./dev abi [COMMIT]" >&2 && exit 2; }
tools/dev/setup.sh abi
before=${1-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
if [ -z "$before" ]; then
    echo "abi: there is no release to compare with; ./dev abi COMMIT compares with a commit"
    exit 0
fi
commit=$(git rev-parse --quiet --verify "$before^{commit}") || {
    echo "abi: there is no commit '$before'" >&2
    exit 2
}
folder=build-abi/$commit
if ! [ -d "$folder" ]; then # complete, as renamed last
    rm -rf "$folder.part" && mkdir -p "$folder.part"
    git archive "$commit" | tar -x -C "$folder.part"
    mv "$folder.part" "$folder"
fi
options=(-Ddefault_library=shared -Dtests=disabled -Dtools=disabled -Ddebug=true -Disas=scalar -Doptimization=1)
(cd "$folder" && tools/dev/build.sh build "${options[@]}")
tools/dev/build.sh build-abi/tree "${options[@]}"

soname() { readelf -d "$1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'; }

compare() { abidiff --headers-dir1 "$folder/include" --headers-dir2 include --drop-private-types "$@" "$old" "$new"; }

describe() { abidw --headers-dir "$1" --drop-private-types --load-all-types --out-file "$3" "$2"; }

failed=0
for library in src/librapt.so src/layers/librapt_layers.so; do
    old=$folder/build/$library new=build-abi/tree/$library
    [ -e "$old" ] || { old=$folder/build/src/$(basename $library) new=build-abi/tree/src/$(basename $library); }
    echo "== $(basename $library): $before ($(soname "$old")), the working tree ($(soname "$new"))"
    status=0
    compare || status=$?
    [ $((status & 3)) = 0 ] || exit 2 # abidiff itself failed
    # 4: something changed, 8: a symbol is gone or differs. Additions break no program.
    changed=0
    compare --no-added-syms --suppressions tools/dev/abi.supp >/dev/null || changed=1
    describe "$folder/include" "$old" build-abi/before.xml
    describe include "$new" build-abi/after.xml
    python3 tools/dev/numbers.py build-abi/before.xml "$folder/include" build-abi/after.xml include || changed=1
    if [ $changed != 0 ] && [ "$(soname "$old")" = "$(soname "$new")" ]; then
        echo "abi: $(basename $library) changed for programs that exist, and has the same soname" >&2
        failed=1
    fi
done
[ $failed = 1 ] || echo "abi: ok"
exit $failed
