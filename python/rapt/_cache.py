# SPDX-License-Identifier: MIT
"""rapt.Cache, keys and values in pages, in any storage type."""
from dataclasses import astuple, dataclass
from typing import Any, Optional, Sequence

import numpy

from . import _core
from ._arrays import Array, Integers, as_array, check_no_gradient, integers, mark_written, new_array, shape_of
from ._attention import LAYOUTS, ORIGINS, arguments_of, choice, results_of
from ._pages import PageTables

DTYPES = {"f32": 1, "f16": 3, "bf16": 4, "q8_0": 5, "q4_0": 6, "q4_1": 7, "q5_0": 8, "q5_1": 9, "iq4_nl": 10,
          "f8_e4m3": 11, "f8_e5m2": 12, "i8": 13}
WITH_SCALES = ("f8_e4m3", "f8_e5m2", "i8")  # per row, computed from its numbers
PAIRINGS = {"halves": 1, "interleaved": 2}
SCALINGS = {"none": 0, "linear": 1, "ntk": 2, "yarn": 3, "llama3": 4}


@dataclass(frozen=True)
class Rotary:
    """How keys are rotated when appended; fields are those of rapt_rotary in rapt/cache.h. Queries are rotated only on
    request: by Cache.attend(query, rotate=True), or by rotate."""

    base: float
    pairing: str = "halves"
    dim: int = 0
    scaling: str = "none"
    factor: float = 0
    original_length: float = 0
    low_factor: float = 0
    high_factor: float = 0
    attention_factor: float = 0

    def _core(self) -> tuple:
        base, pairing, dim, scaling, *rest = astuple(self)
        return (choice("pairing", pairing, PAIRINGS), choice("scaling", scaling, SCALINGS), dim, base, *rest)

    def rotate(self, array: Array, first_positions: Integers, *, lengths: Optional[Integers] = None,
               layout: str = "bhsd", threads: Optional[int] = None) -> Array:
        """Queries [batch, heads, tokens, head_dim], or as layout says, rotated like keys; token i of sequence b
        is at first_positions[b] + i. Returns a new array; tokens from lengths[b] on are 0."""
        array = as_array("array", array)
        check_no_gradient("array", array)
        shape = shape_of("array", array, 4)
        out = new_array(array, shape)
        if lengths is not None:
            out[...] = 0
        _core.rotate(array, out, integers("first_positions", first_positions, shape[0]),
                     integers("lengths", lengths, shape[0]), choice("layout", layout, LAYOUTS), self._core(), threads)
        return out


class _Pool:
    """Pages of keys, or of values: [pages, kv_heads, page_tokens, bytes of a row]."""

    def __init__(self, dim_name: str, dtype_name: str, dtype: str, pages: int, kv_heads: int, page_tokens: int,
                 dim: int) -> None:
        row = _core.row_bytes(choice(dtype_name, dtype, DTYPES), dim)
        if row == 0:
            raise ValueError(f"{dim_name}: {dim} is not a whole number of blocks of {dtype}")
        self.dtype = DTYPES[dtype]
        self.rows = numpy.empty((pages, kv_heads, page_tokens, row), numpy.uint8)
        self.scales = numpy.empty((pages, kv_heads, page_tokens), numpy.float32) if dtype in WITH_SCALES else None

    def arrays(self) -> list:
        return [array for array in (self.rows, self.scales) if array is not None]

    def grown(self, used: int, pages: int) -> "tuple[numpy.ndarray, numpy.ndarray | None]":
        """rows and scales with room for so many pages, the used ones copied."""
        def copy(array: numpy.ndarray) -> numpy.ndarray:
            larger = numpy.empty((pages, *array.shape[1:]), array.dtype)
            larger[:used] = array[:used]
            return larger
        return copy(self.rows), None if self.scales is None else copy(self.scales)


class Cache:
    """Keys and values of a batch of sequences, in pages allocated as sequences grow.

        cache = rapt.Cache(batch=4, kv_heads=8, head_dim=128, dtype="q8_0")
        cache.append(key, value)             # [4, 8, new tokens, 128]
        out = cache.attend(query)            # [4, 32, new tokens, 128], causal, the last query at the last key

    dtype: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl, or f8_e4m3, f8_e5m2, i8 with a scale per row;
    value_dtype if values have another. rotary: keys are rotated when appended, and queries by attend with rotate=True.

    One thread at a time may use a cache.
    """

    def __init__(self, batch: int, kv_heads: int, head_dim: int, *, value_dim: Optional[int] = None,
                 dtype: str = "f32", value_dtype: Optional[str] = None, page_tokens: int = 64, pages: int = 0,
                 layout: str = "bhsd", rotary: Optional[Rotary] = None) -> None:
        for name, number in (("batch", batch), ("kv_heads", kv_heads), ("head_dim", head_dim),
                             ("page_tokens", page_tokens)):
            if number < 1:
                raise ValueError(f"{name}: {number} is below 1")
        if rotary is not None and not isinstance(rotary, Rotary):
            raise TypeError(f"rotary: {rotary!r} is not a rapt.Rotary")
        if value_dim is not None and value_dim < 1:
            raise ValueError(f"value_dim: {value_dim} is below 1")
        if pages < 0:
            raise ValueError(f"pages: {pages} is below 0")
        if rotary is not None:
            rotary._core()  # refuses unknown names
        pages = pages or batch
        self.head_dim, self.value_dim = head_dim, value_dim or head_dim
        self.kv_heads, self.layout, self.rotary = kv_heads, layout, rotary
        self._order = choice("layout", layout, LAYOUTS)
        self._pages = PageTables(batch, page_tokens, pages)
        self._key = _Pool("head_dim", "dtype", dtype, pages, kv_heads, page_tokens, self.head_dim)
        self._value = _Pool("value_dim", "value_dtype" if value_dtype else "dtype", value_dtype or dtype, pages,
                            kv_heads, page_tokens, self.value_dim)

    @property
    def lengths(self) -> numpy.ndarray:
        """Each sequence's number of tokens; a copy."""
        return self._pages.lengths.copy()

    @property
    def nbytes(self) -> int:
        """Bytes of all pages, also free ones."""
        return sum(array.nbytes for pool in (self._key, self._value) for array in pool.arrays())

    def append(self, key: Array, value: Array, *, lengths: Optional[Integers] = None,
               threads: Optional[int] = None) -> None:
        """Appends tokens to every sequence, key [batch, kv_heads, tokens, head_dim] or as layout says; with lengths,
        only the first lengths[b] to sequence b. threads as in rapt.attention."""
        batch = len(self._pages.tables)
        check_no_gradient("key value", key, value)
        self._check("key", key, self.head_dim)
        self._check("value", value, self.value_dim)
        length = key.shape[2 - self._order]
        if value.shape[2 - self._order] != length:
            raise ValueError(f"value: its shape is {list(value.shape)}; key has {length} tokens")
        counts = numpy.full(batch, length) if lengths is None else self._numbers("lengths", lengths)
        if counts.shape != (batch,) or counts.min() < 0 or counts.max() > length:
            raise ValueError(f"lengths: {counts.tolist()} are not {batch} numbers from 0 to {length}")
        missing = self._pages.missing(counts)
        if missing > 0:
            self._grow(max(missing, len(self._pages.users)))
        before = self._pages.state()
        try:
            self._write(key, value, counts, length, threads)
        except BaseException:  # refused tokens are not part of the cache
            self._pages.restore(before)
            raise

    def _write(self, key: Array, value: Array, counts: numpy.ndarray, length: int, threads: Optional[int]) -> None:
        positions = None
        if self.rotary is not None:
            positions = (self._pages.lengths[:, None] + numpy.arange(length)).reshape(-1)
        for source, target in self._pages.grow(counts):
            for array in self._key.arrays() + self._value.arrays():
                array[target] = array[source]
        stored = (self._key.dtype, self._value.dtype, self.head_dim, self.value_dim)
        _core.append(key, value, self._pages.slots(counts, length).reshape(-1), self._key.rows, self._value.rows,
                     self._key.scales, self._value.scales, positions, self._order, stored,
                     None if self.rotary is None else self.rotary._core(), 0, threads)

    def attend(self, query: Array, *, causal: bool = True, scale: Optional[float] = None,
               softcap: Optional[float] = None, window: Any = None, mask: Optional[Array] = None,
               bias: Optional[Array] = None, alibi: Any = None, sinks: Any = None,
               query_position: Any = "bottom-right", query_lengths: Optional[Integers] = None, lse: Any = False,
               weights: Any = False, weights_kind: str = "softmax", out: Optional[Array] = None, rotate: bool = False,
               threads: Optional[int] = None, numerics: int = 0, isa: Optional[str] = None) -> Any:
        """rapt.attention of queries on the cache's content. mask, bias and weights have max(lengths) keys. rotate:
        rotates queries first, by the cache's rotary like its keys."""
        batch, shape = len(self._pages.tables), list(shape_of("query", query, 0))
        if len(shape) != 4 or shape[0] != batch or shape[3] != self.head_dim:
            raise ValueError(f"query: its shape is {shape}; four dimensions, of which the first is {batch} and "
                             f"the last {self.head_dim}, are required")
        if rotate:
            if self.rotary is None:
                raise ValueError("rotate: the cache was made without rotary")
            first = self._first_positions(query_position, query_lengths, shape[2 - self._order])
            query = self.rotary.rotate(query, first, lengths=query_lengths, layout=self.layout, threads=threads)
        kv_length = int(self._pages.lengths.max())
        stored = (self._key.dtype, self._value.dtype, self.head_dim, self.value_dim, kv_length)
        arguments = arguments_of(query, self._key.rows, self._value.rows, causal, scale, softcap, window, mask, bias,
                                 alibi, sinks, query_position, query_lengths, self._pages.lengths, None, None, lse,
                                 weights, weights_kind, out, self.layout, threads, numerics, isa, self._pages.dense(),
                                 stored, self._key.scales, self._value.scales)
        _core.attention(*arguments)
        mark_written(out, lse, weights)
        return results_of(arguments)

    def truncate(self, lengths: Integers) -> None:
        """Forgets the tokens of each sequence from lengths[b] on; 0 ends it."""
        target = self._numbers("lengths", lengths)
        if target.shape != self._pages.lengths.shape or (target < 0).any() or (target > self._pages.lengths).any():
            raise ValueError(f"lengths: {target.tolist()} are not within {self._pages.lengths.tolist()}")
        for b, length in enumerate(target):
            self._pages.truncate(b, int(length))

    def reorder(self, sources: Sequence[int]) -> None:
        """Sequence b continues from sequence sources[b], as in beam search; pages are shared until one of their
        sequences writes to them. The batch size may change."""
        order, batch = self._numbers("sources", sources, 1), len(self._pages.tables)
        if order.ndim != 1 or not order.size or order.min() < 0 or order.max() >= batch:
            raise ValueError(f"sources: {order.tolist()} are not numbers from 0 to {batch - 1}")
        self._pages.reorder(order.tolist())

    def _numbers(self, name: str, numbers: Integers, count: Optional[int] = None) -> numpy.ndarray:
        """Of 64 bits; a single number count times, or once per sequence."""
        array = numpy.asarray(integers(name, numbers, count or len(self._pages.tables)))
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name}: expected integers, not {numbers!r}")
        return array.astype(numpy.int64)

    def _first_positions(self, query_position: Any, query_lengths: Optional[Integers], tokens: int) -> numpy.ndarray:
        """Each sequence's first query position, by attend's query_position."""
        if isinstance(query_position, str):
            choice("query_position", query_position, ORIGINS)
            counts = tokens if query_lengths is None else self._numbers("query_lengths", query_lengths)
            return self._pages.lengths - (counts if query_position == "bottom-right" else self._pages.lengths)
        if query_position is None:
            raise ValueError("query_position: where queries stand is required to rotate them")
        return self._numbers("query_position", query_position)

    def _check(self, name: str, array: Array, dim: int) -> None:
        shape = list(shape_of(name, array, 0))
        batch = len(self._pages.tables)
        if len(shape) != 4 or shape[0] != batch or shape[1 + self._order] != self.kv_heads or shape[3] != dim:
            sizes = ["tokens", self.kv_heads] if self._order else [self.kv_heads, "tokens"]
            raise ValueError(f"{name}: its shape is {shape}; [{batch}, {sizes[0]}, {sizes[1]}, {dim}] is required")

    def _grow(self, pages: int) -> None:
        """Allocates everything before any change. No page gets a number before both pools have room for it."""
        used = len(self._pages.users)
        key, value = self._key.grown(used, used + pages), self._value.grown(used, used + pages)
        self._key.rows, self._key.scales = key
        self._value.rows, self._value.scales = value
        self._pages.add_pages(pages)
