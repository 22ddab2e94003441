#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: pip_torch.sh PYTHON PACKAGE...: installs them, PyTorch from its own index, which has wheels without CUDA; if
# that is unreachable, from PyPI, at a few GB.
set -euo pipefail
python=$1
shift
index=https://download.pytorch.org/whl/cpu
"$python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10)' $index/torch/ 2>/dev/null ||
    index=
exec "$python" -m pip install -q ${index:+--extra-index-url $index} "$@"
