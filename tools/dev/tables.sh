#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: tables.sh here|elsewhere: the kernel tables, as Meson's options take them, that this machine can run, and those
# that it cannot.
set -euo pipefail

can() { grep -qw "$1" /proc/cpuinfo; }

here=auto elsewhere=
if [ "$(uname -m)" = x86_64 ] && ! can avx512bw; then
    here=avx2 elsewhere=avx512
    can avx2 || here=scalar elsewhere=avx512,avx2
fi
echo "${!1}"
