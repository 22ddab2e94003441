#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: tables.sh here|elsewhere: the kernel tables that this machine can run, as -Disas takes them, and those that it
# cannot or does not choose, as -Drough_isas does.
set -euo pipefail

can() { grep -qw "$1" /proc/cpuinfo; }

here=auto elsewhere=
if [ "$(uname -m)" = x86_64 ] && ! can avx512bw; then
    here=avx2 elsewhere=avx512
    can avx2 || here=scalar elsewhere=avx512,avx2
elif [ "$(uname -m)" = x86_64 ]; then
    can avx512vbmi || elsewhere+=,vbmi
    can avx512_bf16 || elsewhere+=,bf16
    can amx_bf16 || elsewhere+=,amx
    can amx_fp16 || elsewhere+=,amx_fp16
    can AuthenticAMD || elsewhere+=,halves
    elsewhere=${elsewhere#,}
fi
echo "${!1}"
