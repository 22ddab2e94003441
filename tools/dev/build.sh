#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: [NINJA_ARGS='-j 1 TARGET'] build.sh FOLDER [Meson options, for the first time]
# What Meson looked for and did not find stays away until it looks again, so it does where other packages are there
# than at the last time.
set -euo pipefail

optional_packages() {
    for package in benchmark blis cairo jansson libzip openblas pangocairo; do
        ! pkg-config --exists $package || echo $package
    done
}

packages=$(optional_packages)
if ! [ -f "$1/build.ninja" ]; then
    meson setup "$@"
elif [ "$packages" != "$(cat "$1/packages.txt" 2>/dev/null)" ]; then
    meson setup --reconfigure "$1"
fi
echo "$packages" >"$1/packages.txt"
# No more at once than there are processors: what takes longest begins first, and shall have one of its own.
exec ninja -C "$1" --quiet -j "$(getconf _NPROCESSORS_ONLN)" ${NINJA_ARGS-}
