# SPDX-License-Identifier: MIT
"""Memory full of normal numbers as a type stores them, so that peers compute on the same bytes as rapt."""
import numpy

import truth

ROW = 128  # of int8, which has a scale for each
PERIOD = ROW * 4099  # numbers, over and over; no power of two, so that heads, keys and values differ


def aligned(shape, dtype, alignment=64):
    """An array as C programs would have it."""
    dtype = numpy.dtype(dtype)
    size = int(numpy.prod(shape)) * dtype.itemsize
    data = numpy.empty(size + alignment, numpy.uint8)
    begin = -data.ctypes.data % alignment
    return data[begin:begin + size].view(dtype).reshape(shape)


def q8_0(numbers):
    """ggml's blocks: a float16 scale and 32 signed bytes."""
    blocks = numbers.reshape(-1, 32)
    scale = (numpy.abs(blocks).max(axis=1, keepdims=True) / 127).astype(numpy.float16)
    codes = numpy.clip(numpy.rint(blocks / scale.astype(numpy.float32)), -127, 127).astype(numpy.int8)
    return numpy.concatenate([scale.view(numpy.uint8), codes.view(numpy.uint8)], axis=1)


def q4_0(numbers):
    """ggml's blocks: a float16 scale and 32 numbers of four bits less 8; byte i has number i below number i + 16."""
    blocks = numbers.reshape(-1, 32)
    extreme = numpy.take_along_axis(blocks, numpy.abs(blocks).argmax(axis=1, keepdims=True), 1)
    scale = (extreme / -8).astype(numpy.float16)
    codes = numpy.clip(numpy.floor(blocks / scale.astype(numpy.float32) + 8.5), 0, 15).astype(numpy.uint8)
    return numpy.concatenate([scale.view(numpy.uint8), codes[:, :16] | codes[:, 16:] << 4], axis=1)


def random_blocks(numbers, dtype, scale, minimum=None):
    """Of the block types that few peers have: any codes will do."""
    size = truth.BLOCKS[dtype][0]
    random = numpy.random.default_rng(2)
    blocks = numpy.frombuffer(random.bytes(numbers.size // 32 * size), numpy.uint8).reshape(-1, size).copy()
    halves = [scale] if minimum is None else [scale, minimum]
    blocks[:, :2 * len(halves)] = numpy.array(halves, numpy.float16).view(numpy.uint8)
    return blocks


def f16(numbers):
    return numbers.astype(numpy.float16).view(numpy.uint8)


def bf16(numbers):
    """Rounded to odd, which is as good here as to even."""
    words = numbers.view(numpy.uint32)
    return (words >> 16 | ((words & 0xffff) != 0)).astype(numpy.uint16).view(numpy.uint8)


def f8(numbers, decode):
    """The nearest codes of those that are numbers."""
    values = decode(numpy.arange(0x7c, dtype=numpy.uint8))
    codes = numpy.searchsorted((values[1:] + values[:-1]) / 2, numpy.abs(numbers)).astype(numpy.uint8)
    return codes | (numbers < 0).astype(numpy.uint8) << 7


def i8(numbers):
    rows = numbers.reshape(-1, ROW)
    scale = numpy.abs(rows).max(axis=1, keepdims=True) / numpy.float32(127)
    codes = numpy.rint(rows / scale).astype(numpy.int8)
    return numpy.concatenate([codes.view(numpy.uint8), scale.view(numpy.uint8)], axis=1)


MAKERS = {"f16": f16, "bf16": bf16, "q8_0": q8_0, "q4_0": q4_0, "i8": i8,
          "q4_1": lambda numbers: random_blocks(numbers, "q4_1", 0.25, -2),
          "q5_0": lambda numbers: random_blocks(numbers, "q5_0", 0.125),
          "q5_1": lambda numbers: random_blocks(numbers, "q5_1", 0.125, -2),
          "iq4_nl": lambda numbers: random_blocks(numbers, "iq4_nl", 0.016),
          "f8_e4m3": lambda numbers: f8(numbers, truth.f8_e4m3), "f8_e5m2": lambda numbers: f8(numbers, truth.f8_e5m2)}


class Memories:
    """One for each type, as large as that of the library, which has float32; the last one is kept."""

    def __init__(self, memory):
        self.memory, self.kept = memory, (None, None)

    def of(self, dtype):
        if dtype not in MAKERS:
            return self.memory
        if self.kept[0] != dtype:
            numbers = numpy.random.default_rng(1).standard_normal(PERIOD, dtype=numpy.float32)
            period = MAKERS[dtype](numbers).reshape(-1)
            self.kept = dtype, aligned(self.memory.nbytes, numpy.uint8)
            for begin in range(0, self.memory.nbytes, period.size):
                part = self.kept[1][begin:begin + period.size]
                part[:] = period[:part.size]
        return self.kept[1]
