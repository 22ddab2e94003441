# SPDX-License-Identifier: MIT
"""What is computed: shapes, their names and their work, and the arrays for them."""
import copy
from dataclasses import dataclass, replace

import numpy

# Elements and bytes of a block of each storage type. A row of int8 has its scale at its end.
BLOCKS = {"f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "f8_e4m3": (1, 1), "f8_e5m2": (1, 1), "i8": (1, 1),
          "q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "iq4_nl": (32, 18)}
SCALE_BYTES = {"i8": 4}
VIEWS = {"f32": numpy.float32, "f16": numpy.float16}  # what numpy has; the others are bytes or 16-bit words


@dataclass(frozen=True)
class Case:
    kind: str  # prefill, decode, extend; mla: decode where the value is the first part of the key
    head_dim: int
    query_length: int
    kv_length: int
    kv_heads: int
    group: int = 1
    batch: int = 1
    causal: bool = False
    window: int = 0
    dtype: str = "f32"  # of keys and values
    page_tokens: int = 0
    value_part: int = 0  # of mla
    numerics: int = 0  # 2: rapt's order 2, and its query and result are of the same type as keys and values

    @property
    def query_heads(self):
        return self.kv_heads * self.group

    @property
    def pairs(self):
        """Query-key pairs attended by one head; the last query stands at the last key."""
        if not self.causal:
            return self.query_length * self.kv_length
        seen = numpy.arange(self.kv_length - self.query_length, self.kv_length) + 1
        return int(numpy.minimum(seen, self.window or self.kv_length).sum())

    @property
    def value_dim(self):
        return self.value_part or self.head_dim

    @property
    def flops(self):
        return 2 * (self.head_dim + self.value_dim) * self.query_heads * self.batch * self.pairs

    @property
    def row_bytes(self):
        elements, block_bytes = BLOCKS[self.dtype]
        return self.head_dim // elements * block_bytes + SCALE_BYTES.get(self.dtype, 0)

    @property
    def region_bytes(self):
        """Keys and values."""
        arrays = 1 if self.value_part else 2
        return arrays * self.batch * self.kv_heads * self.kv_length * self.row_bytes

    @property
    def bytes(self):
        """Query, key, value and output once."""
        number_bytes = 2 if self.numerics == 2 else 4
        return self.region_bytes + \
            number_bytes * (self.head_dim + self.value_dim) * self.batch * self.query_heads * self.query_length

    @property
    def streams(self):
        """Whether memory is the limit to hold it against."""
        return self.kind in ("decode", "mla")

    def name(self, end):
        parts = [f"paged{self.page_tokens}" if self.page_tokens else self.kind, self.dtype]
        parts += [f"order{self.numerics}"] if self.numerics else []
        parts += [f"d{self.head_dim}"]
        if self.kind == "prefill":
            parts += [f"s{self.query_length}", "causal" if self.causal else "full"]
        else:
            parts += [f"q{self.query_length}"] if self.kind == "extend" else []
            parts += [f"kv{self.kv_length}", f"g{self.group}"]
        parts += [f"window{self.window}"] if self.window else []
        return "/".join(parts) + "/" + end

    def folded(self):
        """The same work with the heads of a group as further query rows, in the same memory; full only."""
        return replace(self, query_length=self.query_length * self.group, group=1)


def rounded(numbers, dtype):
    """As float32 that peers can have in a query of the type of keys and values, so that all compute the same."""
    if dtype == "f16":
        return numbers.astype(numpy.float16).astype(numpy.float32)
    if dtype in ("bf16", "f8_e4m3", "f8_e5m2"):
        return (numbers.view(numpy.uint32) & 0xffff0000).view(numpy.float32)
    return numbers


class Cursor:
    """Where in memory the next read begins: all contenders go on from where the last one stopped, so none finds in
    a cache what another has just read."""

    def __init__(self, memory_bytes):
        self.memory_bytes, self.position = memory_bytes, 0

    def take(self, region_bytes, times):
        """The number of the next region of this size, and passes over so many in a row."""
        count = self.memory_bytes // region_bytes
        first = -(-self.position // region_bytes) % count
        self.position = (first + times) % count * region_bytes
        return first


class Problem:
    """A case with its arrays. Decode and extend have many caches and go round them, so that no cache of the
    processor holds what they read."""

    def __init__(self, case, memory, seed=4):
        self.case = case
        if case.region_bytes > memory.nbytes:
            raise MemoryError(f"{case.region_bytes >> 20} MiB do not fit")
        data = memory.view(numpy.uint8)
        count = 1 if case.kind == "prefill" else data.size // case.region_bytes
        self.caches = [self.cache(data[i * case.region_bytes:(i + 1) * case.region_bytes]) for i in range(count)]
        random = numpy.random.default_rng(seed)
        query_shape = (case.batch, case.query_heads, case.query_length, case.head_dim)
        self.query = rounded(random.standard_normal(query_shape, dtype=numpy.float32), case.dtype)
        self.cursor = Cursor(data.size)
        if case.page_tokens:  # of all sequences, in no order
            self.pages = random.permutation(case.batch * case.kv_length // case.page_tokens).astype(numpy.int32)

    def cache(self, data):
        """Keys and values as [batch or page, head, token, numbers]; those of bf16 are 16-bit words, of other types
        without numbers in numpy bytes."""
        case = self.case
        batch, tokens = case.batch, case.kv_length
        if case.page_tokens:
            batch, tokens = batch * tokens // case.page_tokens, case.page_tokens
        numbers = data.view(numpy.uint16 if case.dtype == "bf16" else VIEWS.get(case.dtype, numpy.uint8))
        arrays = numbers.reshape(1 if case.value_part else 2, batch, case.kv_heads, tokens, -1)
        return arrays[0], arrays[-1]

    def take(self, times):
        """The number of the next cache, of so many in a row."""
        return self.cursor.take(self.case.region_bytes, times) if len(self.caches) > 1 else 0

    def folded(self):
        """The same data, and the same cursor."""
        problem = copy.copy(self)
        problem.case = self.case.folded()
        problem.query = self.query.reshape(self.case.batch, self.case.kv_heads, -1, self.case.head_dim)
        return problem
