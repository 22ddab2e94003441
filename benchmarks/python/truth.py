# SPDX-License-Identifier: MIT
"""Attention in double of the numbers as they are stored, with decoders of its own: what results are held against."""
import numpy


def q8_0(blocks):
    scale = blocks[..., :2].copy().view(numpy.float16).astype(float)
    return scale * blocks[..., 2:].view(numpy.int8)


def q4_0(blocks):
    scale = blocks[..., :2].copy().view(numpy.float16).astype(float)
    codes = numpy.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], axis=-1)
    return scale * (codes.astype(float) - 8)


def f8_e4m3(codes):
    exponent, fraction = codes >> 3 & 15, codes & 7
    size = numpy.where(exponent == 0, fraction / 8, 1 + fraction / 8) * 2.0 ** (numpy.maximum(exponent, 1) - 7.0)
    return numpy.where(codes & 128, -size, size)


def f8_e5m2(codes):
    return (codes.astype(numpy.uint16) << 8).view(numpy.float16).astype(float)


def i8(rows):
    return rows[..., :-4].view(numpy.int8) * rows[..., -4:].copy().view(numpy.float32).astype(float)


DECODERS = {"f8_e4m3": f8_e4m3, "f8_e5m2": f8_e5m2, "i8": i8}


def numbers_of(array, dtype):
    """Of a cache's array, as double."""
    if dtype == "bf16":
        return (array.astype(numpy.uint32) << 16).view(numpy.float32).astype(float)
    if dtype in ("q8_0", "q4_0"):
        blocks = array.reshape(*array.shape[:-1], -1, 34 if dtype == "q8_0" else 18)
        return (q8_0 if dtype == "q8_0" else q4_0)(blocks).reshape(*array.shape[:-1], -1)
    return DECODERS[dtype](array) if dtype in DECODERS else array.astype(float)


def sequences(problem, array):
    """[batch, KV head, token, ...] of a cache, in the order of its tokens."""
    if not problem.case.page_tokens:
        return array
    pages = array[problem.pages].reshape(problem.case.batch, -1, *array.shape[1:])
    return pages.swapaxes(1, 2).reshape(problem.case.batch, array.shape[1], problem.case.kv_length, -1)


def attention(query, key, value, case, first):
    """Of some queries of one KV head; the first is number first."""
    scores = query @ key.T / numpy.sqrt(case.head_dim)
    position = case.kv_length - case.query_length + first + numpy.arange(len(query))
    back = position[:, None] - numpy.arange(case.kv_length) if case.causal or case.window else numpy.zeros(1)
    scores = numpy.where((back < 0) | (back >= (case.window or numpy.inf)), -numpy.inf, scores)
    weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ value / weights.sum(axis=1, keepdims=True)


def truth(problem):
    """The result of a problem's first cache, [batch, query head, query, value dim]."""
    case, step = problem.case, 1024  # queries at once
    keys, values = (sequences(problem, array) for array in problem.caches[0])
    out = numpy.empty((case.batch, case.query_heads, case.query_length, case.value_dim))
    for batch in range(case.batch):
        for head in range(case.kv_heads):
            key = numbers_of(keys[batch, head], case.dtype)
            value = key[:, :case.value_dim] if case.value_part else numbers_of(values[batch, head], case.dtype)
            for query_head in range(head * case.group, (head + 1) * case.group):
                for first in range(0, case.query_length, step):
                    rows = slice(first, first + step)
                    query = problem.query[batch, query_head, rows].astype(float)
                    out[batch, query_head, rows] = attention(query, key, value, case, first)
    return out


def error_of(result, expected):
    """The largest of all rows, as a share of the row's length."""
    rows = expected.reshape(-1, expected.shape[-1])
    difference = numpy.asarray(result, float).reshape(rows.shape) - rows
    return (numpy.linalg.norm(difference, axis=1) / numpy.linalg.norm(rows, axis=1)).max()
