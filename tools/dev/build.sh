#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: build.sh FOLDER [Meson options, for the first time]
set -euo pipefail
[ -f "$1/build.ninja" ] || meson setup "$@"
exec ninja -C "$1" --quiet
