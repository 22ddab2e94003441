#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Transformers with rapt's attention beside PyTorch's ("sdpa"), and what a call from Python costs.

A Llama with 8 layers, 32 query and 8 KV heads of 128 and random weights: generate after 4096 tokens of context, in
float32 and in bfloat16, and a prefill of 4096 tokens through one layer in float32 (layers are alike). Attention is
timed inside the model, by its calls. Turns alternate; medians of turns are stored in benchmarks/results/python.json,
part by part, and docs/python.md has them by python_tables.py.
"""
import argparse
import json
import pathlib
import platform
import statistics
import sys
import time

import numpy
import torch
import transformers

import checks
import rapt.transformers
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

CONTEXT, TOKENS = 4096, 6
KINDS = {"sdpa": sdpa_attention_forward, "rapt": rapt.transformers.attention_forward}
CACHES = {"": transformers.DynamicCache, "_growing": rapt.transformers.GrowingCache}
spent = {"calls": 0.0}


def timed(function):
    def attention(*args, **kwargs):
        begin = time.perf_counter()
        result = function(*args, **kwargs)
        spent["calls"] += time.perf_counter() - begin
        return result
    return attention


def register():
    for name, function in KINDS.items():
        transformers.AttentionInterface.register("timed_" + name, timed(function))
        transformers.AttentionMaskInterface.register("timed_" + name, sdpa_mask)


def build(layers, dtype=torch.float32):
    config = transformers.LlamaConfig(
        vocab_size=1024, hidden_size=4096, intermediate_size=2048, num_hidden_layers=layers, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=2 * CONTEXT, eos_token_id=None, pad_token_id=0)
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).to(dtype)
    model = model.to_empty(device="cpu").eval()
    some = (torch.randn(1 << 16) * 0.02).to(dtype)
    for parameter in model.parameters():
        flat = parameter.view(-1)
        for first in range(0, len(flat), len(some)):
            flat[first:first + len(some)] = some[:len(flat) - first]
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model


def turn(model, kind, run, prepare=tuple):
    """Seconds of run, with what prepare gives it, and of attention within."""
    model.set_attn_implementation("timed_" + kind)
    arguments = prepare()
    spent["calls"], begin = 0.0, time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin, spent["calls"]


def alternate(turns, ways):
    """Medians of the turns of each way: its name, and the arguments of turn."""
    times = {name: [] for name in ways}
    for number in range(turns + 1):
        for name, arguments in ways.items():
            seconds = turn(*arguments)
            if number > 0:  # the first one warms up
                times[name].append(seconds)
    return {name: [statistics.median(column) for column in zip(*rows)] for name, rows in times.items()}


@torch.no_grad()
def measure_decode(turns, dtype=torch.float32):
    model = build(8, dtype)
    some = torch.randn(1, 8, CONTEXT, 128).to(dtype)
    tokens = torch.ones(1, CONTEXT + 1, dtype=torch.long)

    def filled(cache):
        for layer in range(8):
            cache.update(some, some, layer)
        return [cache]

    def generate(cache):
        model.generate(tokens, past_key_values=cache, max_new_tokens=TOKENS, do_sample=False, use_cache=True)

    ways = {kind + suffix: (model, kind, generate, lambda new=new: filled(new()))
            for suffix, new in CACHES.items() for kind in KINDS}
    return {"context": CONTEXT, "tokens": TOKENS, "layers": 8,
            **{name: {"attention_ms_per_token": attention / TOKENS * 1e3, "ms_per_token": whole / TOKENS * 1e3}
               for name, (whole, attention) in alternate(turns, ways).items()}}


@torch.no_grad()
def measure_prefill(turns):
    model = build(1)
    tokens = torch.arange(CONTEXT)[None] % 1000
    medians = alternate(turns, {kind: (model, kind, lambda: model(tokens, use_cache=False, logits_to_keep=1))
                                for kind in KINDS})
    return {"tokens": CONTEXT, "layers": 1, **{kind: {"attention_ms": attention * 1e3, "ms": whole * 1e3}
                                               for kind, (whole, attention) in medians.items()}}


def attend_in_all_ways(dtype, turns):
    """Milliseconds of the attention of a token in 8 layers: the ways in which Transformers calls PyTorch, and rapt."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    caches = [torch.randn(2, 1, 8, CONTEXT, 128).to(dtype) for _ in range(8)]
    query, mask = torch.randn(1, 32, 1, 128).to(dtype), torch.ones(1, 1, 1, CONTEXT, dtype=torch.bool)

    def repeated(cache):
        return cache[:, :, :, None].expand(2, 1, 8, 4, CONTEXT, 128).reshape(2, 1, 32, CONTEXT, 128)

    ways = {"sdpa, no mask: enable_gqa": lambda cache: sdpa(query, *cache, enable_gqa=True),
            "sdpa, mask: queries of a group as rows": lambda cache: sdpa(query.view(1, 8, 4, 128), *cache, mask),
            "rapt, no mask": lambda cache: rapt.attention(query, *cache),
            "rapt, mask": lambda cache: rapt.attention(query, *cache, mask=mask),
            "sdpa, mask: keys and values repeated": lambda cache: sdpa(query, *repeated(cache), mask)}
    times = {name: [] for name in ways}
    for _ in range(turns + 1):
        for name, attend in ways.items():
            attend(caches[0])  # what the one before it left in caches is gone
            begin = time.perf_counter()
            for cache in caches:
                attend(cache)
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(column[1:]) * 1e3 for name, column in times.items()}


@torch.no_grad()
def measure_ways(turns):
    return {str(dtype).split(".")[1]: attend_in_all_ways(dtype, turns) for dtype in (torch.float32, torch.bfloat16)}


def seconds_of(call, count=4000, rounds=7):
    best = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        best.append((time.perf_counter() - begin) / count)
    return statistics.median(best)


def measure_calls():
    """A call so small that little is computed; C is the same work in a loop of the core's own."""
    arrays = [numpy.ones((1, 1, 1, 64), numpy.float32) for _ in range(3)]
    tensors = [torch.from_numpy(array) for array in arrays]
    out, to = numpy.empty_like(arrays[0]), torch.empty(1, 1, 1, 64)
    plan = rapt.Plan(*arrays)
    c = rapt._core.seconds_of_call(arrays[0], 100000)
    calls = {"numpy": lambda: rapt.attention(*arrays), "numpy, out": lambda: rapt.attention(*arrays, out=out),
             "torch": lambda: rapt.attention(*tensors), "torch, out": lambda: rapt.attention(*tensors, out=to),
             "plan, numpy, out": lambda: plan(*arrays, out=out),
             "sdpa": lambda: torch.nn.functional.scaled_dot_product_attention(*tensors)}
    with torch.no_grad():
        return {"c_us": c * 1e6, **{name: seconds_of(call) * 1e6 for name, call in calls.items()}}


PARTS = {"decode": measure_decode, "decode_bfloat16": lambda turns: measure_decode(turns, torch.bfloat16),
         "prefill": measure_prefill, "ways": measure_ways, "calls": lambda turns: measure_calls()}


def cpu_name():
    for line in open("/proc/cpuinfo", encoding="utf-8") if platform.system() == "Linux" else ():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--turns", type=checks.at_least_one, default=9)
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).parents[1] / "results" / "python.json")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}': {', '.join(PARTS)}")
    register()
    stored = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
    stored["machine"] = {"cpu": cpu_name(), "threads": torch.get_num_threads(), "isa": rapt.info()["isa"],
                         "torch": torch.__version__, "transformers": transformers.__version__,
                         "rapt": rapt.__version__}
    for part in arguments.parts:
        stored[part] = PARTS[part](arguments.turns)
        print(part, json.dumps(stored[part], indent=1))
    arguments.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
