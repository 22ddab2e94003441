# SPDX-License-Identifier: MIT
"""Attention in double of the numbers as they are stored, with decoders of its own: what results are held against."""
import numpy


# Of ggml's blocks of 32 numbers: bytes, whether there is a minimum beside the scale, fifth bits; what is subtracted.
BLOCKS = {"q8_0": (34, False, False, 0), "q4_0": (18, False, False, 8), "q4_1": (20, True, False, 0),
          "q5_0": (22, False, True, 16), "q5_1": (24, True, True, 0), "iq4_nl": (18, False, False, 0)}
IQ4_NL = numpy.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], float)


def numbers_of_blocks(rows, dtype):
    size, has_minimum, has_fifth, less = BLOCKS[dtype]
    blocks = rows.reshape(*rows.shape[:-1], -1, size)
    halves = blocks[..., :4 if has_minimum else 2].copy().view(numpy.float16).astype(float)
    rest = blocks[..., 4 if has_minimum else 2:]
    if dtype == "q8_0":
        codes = rest.view(numpy.int8)
    else:
        nibbles = rest[..., -16:]
        codes = numpy.concatenate([nibbles & 15, nibbles >> 4], axis=-1)
    if has_fifth:
        codes = codes | numpy.unpackbits(rest[..., :4], axis=-1, bitorder="little") << 4
    numbers = IQ4_NL[codes] if dtype == "iq4_nl" else codes.astype(float) - less
    numbers = halves[..., :1] * numbers + (halves[..., 1:] if has_minimum else 0)
    return numbers.reshape(*rows.shape[:-1], -1)


def table_f8_e4m3():
    codes = numpy.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    size = numpy.where(exponent == 0, fraction / 8, 1 + fraction / 8) * 2.0 ** (numpy.maximum(exponent, 1) - 7)
    return numpy.where(codes & 128, -size, size)


TABLE_F8_E4M3 = table_f8_e4m3()


def f8_e4m3(codes):
    """None of which is NaN."""
    return TABLE_F8_E4M3[codes]


def f8_e5m2(codes):
    return (codes.astype(numpy.uint16) << 8).view(numpy.float16).astype(float)


def i8(rows):
    return rows[..., :-4].view(numpy.int8) * rows[..., -4:].copy().view(numpy.float32).astype(float)


DECODERS = {"f8_e4m3": f8_e4m3, "f8_e5m2": f8_e5m2, "i8": i8}


def numbers_of(array, dtype):
    """Of a cache's array, as double."""
    if dtype == "bf16":
        return (array.astype(numpy.uint32) << 16).view(numpy.float32).astype(float)
    if dtype in BLOCKS:
        return numbers_of_blocks(array, dtype)
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
