#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: tools/demo.sh [RAPT]
# Runs the command RAPT (build/rapt) on the queries, keys and values of a real language model, checks the
# result against what PyTorch computed from them, and shows which word attends to which.
set -eu

root=$(dirname "$0")/..
rapt=$(realpath "${1:-$root/build/rapt}")
cd "$root/tests/data/minilm/first_layer"
results=$(mktemp -d)
trap 'rm -r "$results"' EXIT

# Head 5 looks back for what the word belongs to. The tolerance is four times PyTorch's own error, as
# ../README.md has it.
cat <<'TEXT'
The first layer of all-MiniLM-L6-v2 (12 heads of 32) reads this sentence:

  the machine stopped working in january, but the baker still sells fresh
  rolls to the commuters who wait outside her shop each morning.

The model cuts rare words, ##s continues the word before; [CLS] and [SEP] mark
the ends.

$ rapt attend --query query.npy --key key.npy --value value.npy --out out.npy \
    --expect pytorch.npy --tolerance 3.9e-6 --repeat 20 \
    --tokens tokens.txt --show-head 5
TEXT
ln -s "$PWD/out.npy" "$results/pytorch.npy"
for file in query.npy key.npy value.npy tokens.txt; do ln -s "$PWD/$file" "$results/$file"; done
cd "$results"
"$rapt" attend --query query.npy --key key.npy --value value.npy --out out.npy \
    --expect pytorch.npy --tolerance 3.9e-6 --repeat 20 \
    --tokens tokens.txt --show-head 5
