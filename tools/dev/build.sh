#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: [CFLAGS=FLAGS] [NINJA_ARGS='-j 1 TARGET'] build.sh FOLDER [Meson options, for the first time]
# Meson does not look again for a dependency that it missed, so reconfigure when the installed packages have changed.
set -euo pipefail

optional_packages() {
    for package in benchmark blis cairo jansson libzip openblas pangocairo; do
        ! pkg-config --exists $package || echo $package
    done
}

# With 1.5 GB per processor, GCC collects garbage less often: the same code in four fifths of the time.
flags=${CFLAGS-}
least_kilobytes=$(($(getconf _NPROCESSORS_ONLN) * 1500000))
if "${CC-cc}" --version 2>/dev/null | grep -q 'Free Software' &&
    awk -v least="$least_kilobytes" '/MemAvailable/ { exit !($2 >= least) }' /proc/meminfo 2>/dev/null; then
    flags+=' --param=ggc-min-expand=100 --param=ggc-min-heapsize=400000'
fi

packages=$(optional_packages)
if ! [ -f "$1/build.ninja" ]; then
    meson setup "$@" "-Dc_args=$flags"
elif [ "$packages" != "$(cat "$1/packages.txt" 2>/dev/null)" ]; then
    meson setup --reconfigure "$1"
fi
echo "$packages" >"$1/packages.txt"
# One job per processor: the longest begin first, and each should have a processor to itself.
exec ninja -C "$1" --quiet -j "$(getconf _NPROCESSORS_ONLN)" ${NINJA_ARGS-}
