# SPDX-License-Identifier: MIT
"""What is computed: shapes, their names and their work, and the arrays for them."""
import copy
from dataclasses import dataclass, replace

import numpy


@dataclass(frozen=True)
class Case:
    kind: str  # prefill, decode, extend
    head_dim: int
    query_length: int
    kv_length: int
    kv_heads: int
    group: int = 1
    batch: int = 1
    causal: bool = False
    window: int = 0

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
    def flops(self):
        return 4 * self.head_dim * self.query_heads * self.batch * self.pairs

    @property
    def region_bytes(self):
        return 8 * self.batch * self.kv_heads * self.kv_length * self.head_dim

    @property
    def bytes(self):
        """Query, key, value and output once."""
        return self.region_bytes + 8 * self.batch * self.query_heads * self.query_length * self.head_dim

    @property
    def streams(self):
        """Whether memory is the limit to hold it against."""
        return self.kind == "decode"

    def name(self, end):
        parts = [self.kind, "f32", f"d{self.head_dim}"]
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

    def __init__(self, case, memory, seed=1):
        self.case = case
        floats = case.region_bytes // 4
        if floats > memory.size:
            raise MemoryError(f"{case.region_bytes >> 20} MiB do not fit")
        count = 1 if case.kind == "prefill" else memory.size // floats
        shape = (2, case.batch, case.kv_heads, case.kv_length, case.head_dim)
        self.caches = [memory[i * floats:(i + 1) * floats].reshape(shape) for i in range(count)]
        query_shape = (case.batch, case.query_heads, case.query_length, case.head_dim)
        self.query = numpy.random.default_rng(seed).standard_normal(query_shape, dtype=numpy.float32)
        self.cursor = Cursor(memory.nbytes)

    def take(self, times):
        """The number of the next cache, of so many in a row."""
        return self.cursor.take(self.case.region_bytes, times) if len(self.caches) > 1 else 0

    def folded(self):
        """The same data, and the same cursor."""
        problem = copy.copy(self)
        problem.case = self.case.folded()
        problem.query = self.query.reshape(self.case.batch, self.case.kv_heads, -1, self.case.head_dim)
        return problem
