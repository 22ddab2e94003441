#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes the pictures of docs/tutorial.md, in docs/pictures.
set -euo pipefail
tools/dev/setup.sh pictures
tools/dev/build.sh build
rapt=build/tools/rapt
results=$(mktemp -d)
trap 'rm -r "$results"' EXIT

# picture NAME QUERY KEY VALUE [attend options] -- [heatmap options]
picture() {
    local name=$1 query=$2 key=$3 value=$4 attend=()
    shift 4
    while [ "$1" != -- ]; do attend+=("$1") && shift; done
    $rapt attend --query "$query" --key "$key" --value "$value" --out "$results/out.npy" \
        --attention-out "$results/weights.npy" "${attend[@]}" >/dev/null
    $rapt heatmap --attention "$results/weights.npy" --out "docs/pictures/attention-$name.png" "${@:2}"
}

printf '%s\n' Hello shiny sun! >"$results/hello.txt"
printf '%s\n' Your journey starts with one step >"$results/six.txt"
d=tests/data/layers/01a_simplified_hello
picture hello $d/{x,x,x}.npy --scale 1 -- --tokens "$results/hello.txt"
d=tests/data/layers/03a_causal
picture causal $d/{q,k,v}.npy --causal -- --tokens "$results/six.txt" --title "Causal weights"
d=tests/data/minilm/first_layer
picture heads $d/{query,key,value}.npy -- --tokens $d/tokens.txt --head all --scale sqrt
