# SPDX-License-Identifier: MIT
"""Errors of rapt and of PyTorch against attention in double, both relative to the largest |out| of the row. One head of
head_dim 64. PyTorch has two ways: its fused one ("flash"), and matrix products with a softmax between ("plain")."""
import argparse
from types import SimpleNamespace

import numpy
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from cases import Case
from library import Library, Rapt

HEAD_DIM, SEED = 64, 7
WAYS = {"flash": SDPBackend.FLASH_ATTENTION, "plain": SDPBackend.MATH}


def normal(random, *shape):
    return random.standard_normal(shape)


def ramp(first, last, queries, keys, random):
    """Logits from first to last, a little less for some queries: one number of query and key counts."""
    query, key = numpy.zeros((queries, HEAD_DIM)), numpy.zeros((keys, HEAD_DIM))
    query[:, 0] = HEAD_DIM**0.5 * random.uniform(0.5, 1, queries)
    key[:, 0] = numpy.linspace(first, last, keys)
    return query, key


def near_million(queries, keys, random):
    """Integers whose dot products float32 holds, 8e6 and a few units more or less."""
    query, key = numpy.zeros((queries, HEAD_DIM)), numpy.zeros((keys, HEAD_DIM))
    query[:, 0], key[:, 0] = 2000, 4000
    query[:, 1:], key[:, 1:] = (random.integers(-1, 2, (count, HEAD_DIM - 1)) for count in (queries, keys))
    return query, key


KINDS = ("normal", "heavy-tailed", "logits 20 ... 0", "logits 0 ... 1", "rising values", "equal keys",
         "equal keys, positive values", "equal keys, rising values", "logits near 1e6")


def drawn(data, queries, keys, random):
    """Query, key and value; logits are query . key / 8."""
    query, key, value = (normal(random, count, HEAD_DIM) for count in (queries, keys, keys))
    if data == "heavy-tailed":
        query, key, value = (random.standard_t(2, (count, HEAD_DIM)) for count in (queries, keys, keys))
    elif data == "logits near 1e6":
        query, key = near_million(queries, keys, random)
    elif data.startswith("logits"):
        query, key = ramp(float(data.split()[1]), float(data.split()[-1]), queries, keys, random)
    if "equal keys" in data:
        key[:] = key[0]
    if "positive values" in data:
        value = random.uniform(0, 1, value.shape)
    if "rising values" in data:
        value = numpy.linspace(0, 1, keys)[:, None] * random.uniform(0.5, 1, HEAD_DIM)
    return [numpy.ascontiguousarray(x, dtype=numpy.float32) for x in (query, key, value)]


def exact(query, key, value):
    rows = []
    for row in query.astype(float):
        logits = key.astype(float) @ row / HEAD_DIM**0.5
        weights = numpy.exp(logits - logits.max())
        rows.append(weights @ value.astype(float) / weights.sum())
    return numpy.array(rows)


def of_rapt(library, query, key, value):
    case = Case("prefill", HEAD_DIM, len(query), len(key), 1)
    problem = SimpleNamespace(case=case, query=query, caches=[(key, value)])
    return Rapt(library, problem, library.chosen_isa(), 1).result()


@torch.inference_mode()
def of_pytorch(way, query, key, value):
    tensors = [torch.from_numpy(x)[None, None] for x in (query, key, value)]
    with sdpa_kernel(WAYS[way]):
        return torch.nn.functional.scaled_dot_product_attention(*tensors)[0, 0].numpy()


def rms(out, truth):
    error = (out - truth) / numpy.abs(truth).max(axis=1, keepdims=True)
    return numpy.sqrt(numpy.mean(error**2))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    library = Library(arguments.library)
    print(f"rapt {library.version}, PyTorch {torch.__version__}")
    print("| data | keys | rapt | PyTorch, flash | ratio | PyTorch, plain | ratio |\n|---|---|---|---|---|---|---|")
    for data in KINDS:
        for keys in (512, 8192, 131072):
            arrays = drawn(data, 64 if keys > 100000 else 256, keys, numpy.random.default_rng(SEED))
            truth = exact(*arrays)
            ours = rms(of_rapt(library, *arrays), truth)
            theirs = [rms(of_pytorch(way, *arrays), truth) for way in WAYS]
            print(f"| {data} | {keys} | {ours:.1e} | " + " | ".join(f"{x:.1e} | {ours / x:.2g}" for x in theirs) + " |",
                  flush=True)


if __name__ == "__main__":
    main()
