# SPDX-License-Identifier: MIT
"""rapt.attention and rapt.Plan."""
from numbers import Integral
from typing import Any, Optional, Union

import numpy

from . import _core
from ._arrays import (Array, Floats, Integers, as_array, check_no_gradient, check_not_traced, floats, integers,
                      is_tensor, mark_written, new_array, own_copy, shape_of)

LAYOUTS = {"bhsd": 0, "bshd": 1}
ORIGINS = {"top-left": 1, "bottom-right": 2}
GIVEN = 3
WEIGHTS_KINDS = {"raw": 1, "softcap": 2, "masked": 3, "softmax": 4}
LISTS = slice(10, 17)  # of the core's arguments: alibi to pages, kept by plans
BOUND = 8  # the core's first arguments, passed to each run of a plan


def choice(name: str, value: Any, choices: "dict[str, int]") -> int:
    try:
        return choices[value]
    except (KeyError, TypeError):
        raise ValueError(f"{name}: {value!r} is not one of {', '.join(choices)}") from None


def window_sides(window: "int | tuple[int | None, int | None] | None") -> "tuple[int, int] | None":
    """A number of keys, including the query's own, or how many before and after it; None or -1: no limit."""
    if window is None:
        return None
    if isinstance(window, Integral) and not isinstance(window, bool):  # NumPy's, too
        if window < 1:
            raise ValueError(f"window: {window} is below 1")
        return int(window) - 1, 0
    try:
        left, right = window
    except (TypeError, ValueError):
        raise TypeError(f"window: {window!r} is neither a number of keys nor a pair (before, after)") from None
    return -1 if left is None else left, -1 if right is None else right


def arguments_of(query: Array, key: Array, value: Array, causal: bool, scale: Optional[float],
                 softcap: Optional[float], window: Any, mask: Optional[Array], bias: Optional[Array], alibi: Any,
                 sinks: Any, query_position: Any, query_lengths: Any, kv_lengths: Any, key_position: Any,
                 mask_fill: Optional[float], lse: Any, weights: Any, weights_kind: str, out: Optional[Array],
                 layout: str, threads: Optional[int], numerics: int, isa: Optional[str],
                 pages: Any = None, stored: Any = None, key_scales: Any = None, value_scales: Any = None) -> list:
    """The core's arguments, with new arrays for results not given."""
    order = LAYOUTS[layout] if layout in LAYOUTS else choice("layout", layout, LAYOUTS)
    if type(query) is not numpy.ndarray:
        query = as_array("query", query)
        if is_tensor(query):
            check_not_traced(query)
    check_no_gradient("query key value bias alibi sinks out lse weights scale softcap", query, key, value, bias, alibi,
                      sinks, out, lse, weights, scale, softcap)
    if type(lse) is numpy.bool_:
        lse = bool(lse)
    if type(weights) is numpy.bool_:
        weights = bool(weights)
    shape = tuple(query.shape)
    if len(shape) < 2 + order:
        shape = shape_of("query", query, 2 + order)  # raises
    if out is None:
        out = new_array(query, shape[:-1] + (stored[3] if stored else shape_of("value", value, 1)[-1],))
    if lse is True or weights is True:
        rows = shape if order == 0 else shape[:-3] + (shape[-2], shape[-3], shape[-1])
        keys = stored[4] if stored else shape_of("key", key, 2 + order)[-2 - order]
        if lse is True:
            lse = new_array(query, rows[:-1], True)
        if weights is True:
            weights = new_array(query, rows[:-1] + (keys,), True)
    origin = None
    if query_position is not None:
        if isinstance(query_position, str):
            origin, query_position = choice("query_position", query_position, ORIGINS), None
        else:
            origin = GIVEN
    if query_position is not None or query_lengths is not None or kv_lengths is not None or key_position is not None:
        batch = shape[0] if len(shape) == 4 else 1
        query_position = integers("query_position", query_position, batch)
        query_lengths = integers("query_lengths", query_lengths, batch)
        kv_lengths = integers("kv_lengths", kv_lengths, batch)
        key_position = integers("key_position", key_position, batch)
    return [query, key, value, out, mask, bias, None if lse is False else lse, None if weights is False else weights,
            key_scales, value_scales, floats("alibi", alibi), floats("sinks", sinks), query_lengths, kv_lengths,
            query_position, key_position, pages, order, stored, causal, scale, softcap, window_sides(window), origin,
            WEIGHTS_KINDS[weights_kind] if weights_kind in WEIGHTS_KINDS else
            choice("weights_kind", weights_kind, WEIGHTS_KINDS), mask_fill, numerics,
            None if isa is None else choice("isa", isa, _core.ISAS), threads]


def results_of(arguments: list) -> Any:
    """out, or a tuple of out and the requested lse, weights."""
    out, lse, weights = arguments[3], arguments[6], arguments[7]
    if lse is None and weights is None:
        return out
    return tuple(result for result in (out, lse, weights) if result is not None)


def attention(query: Array, key: Array, value: Array, *, causal: bool = False, scale: Optional[float] = None,
              softcap: Optional[float] = None, window: "int | tuple[int | None, int | None] | None" = None,
              mask: Optional[Array] = None, bias: Optional[Array] = None, alibi: "bool | Floats | None" = None,
              sinks: Optional[Floats] = None, query_position: "str | Integers | None" = None,
              query_lengths: Optional[Integers] = None, kv_lengths: Optional[Integers] = None,
              key_position: Optional[Integers] = None, mask_fill: Optional[float] = None,
              lse: Union[bool, Array] = False, weights: Union[bool, Array] = False, weights_kind: str = "softmax",
              out: Optional[Array] = None, layout: str = "bhsd", threads: Optional[int] = None, numerics: int = 0,
              isa: Optional[str] = None) -> Any:
    """softmax(mask(bias(softcap(scale * query * key^T)))) * value

    query is [batch, heads, tokens, head_dim], key and value are [batch, kv_heads, tokens, dim], or all without batch;
    with layout="bshd" tokens come before heads. heads is a multiple of kv_heads: grouped queries require no
    repeated keys. Each tensor is float32, float16 or bfloat16, independently; keys and values may also be float8. Any
    strides are read without a copy, unless the last dimension is not contiguous.

    causal          queries do not see later keys
    scale           of the scores; None: 1/sqrt(head_dim)
    softcap         cap * tanh(score / cap)
    window          number of keys that a query sees, the last one at its own position; or (before, after)
    mask            bool, true = attend; bias: added to the scores. Both broadcast to [batch, heads, queries, keys],
                    in any layout, but not along keys
    alibi           True: the slopes of the paper; or a slope per head
    sinks           a logit per head, which takes its share of the softmax
    query_position  query 0's position among the keys, required with causal, window or alibi if lengths differ:
                    "top-left" (at key 0), "bottom-right" (the last query at the last key), a number, or one per
                    sequence
    query_lengths, kv_lengths  how many tokens of each sequence of the batch are real
    key_position    position of key 0 of each sequence; default 0
    mask_fill       replaces scores where mask is false, instead of excluding them
    lse, weights    True, or a float32 array to fill: log-sum-exp [batch, heads, queries], without sinks, and
                    weights [batch, heads, queries, keys]; weights_kind: "softmax", "raw", "softcap" or "masked"
    out             an array for the result; None: a new one of the query's kind and type
    threads         at most this many, and no more than the processors, or than PyTorch's OpenMP has; None: as many
                    as PyTorch's OpenMP, or the machine, has
    numerics        number of the order of operations; 0: the library's default, -1: the fastest here, with bits that
                    depend on the machine
    isa             "avx512" and so on; None: the best here

    Returns out, or a tuple of out and the requested lse, weights.
    """
    arguments = arguments_of(query, key, value, causal, scale, softcap, window, mask, bias, alibi, sinks,
                             query_position, query_lengths, kv_lengths, key_position, mask_fill, lse, weights,
                             weights_kind, out, layout, threads, numerics, isa)
    _core.attention(*arguments)
    mark_written(out, lse, weights)
    return results_of(arguments)


class Plan:
    """A checked call, for loops: it runs with other arrays of the same shapes, types and strides.

        plan = rapt.Plan(query, key, value, causal=True)
        for layer in layers:
            out = plan(layer.query, layer.key, layer.value)

    Takes the arguments of rapt.attention; lists, slopes and sinks are copied, and fixed. Any number of threads may run
    one plan at the same time.
    """

    def __init__(self, query: Array, key: Array, value: Array, *, causal: bool = False, scale: Optional[float] = None,
                 softcap: Optional[float] = None, window: "int | tuple[int | None, int | None] | None" = None,
                 mask: Optional[Array] = None, bias: Optional[Array] = None, alibi: "bool | Floats | None" = None,
                 sinks: Optional[Floats] = None, query_position: "str | Integers | None" = None,
                 query_lengths: Optional[Integers] = None, kv_lengths: Optional[Integers] = None,
                 key_position: Optional[Integers] = None, mask_fill: Optional[float] = None,
                 lse: Union[bool, Array] = False, weights: Union[bool, Array] = False, weights_kind: str = "softmax",
                 out: Optional[Array] = None, layout: str = "bhsd", threads: Optional[int] = None, numerics: int = 0,
                 isa: Optional[str] = None) -> None:
        arguments = arguments_of(query, key, value, causal, scale, softcap, window, mask, bias, alibi, sinks,
                                 query_position, query_lengths, kv_lengths, key_position, mask_fill, lse, weights,
                                 weights_kind, out, layout, threads, numerics, isa)
        arguments[LISTS] = [own_copy(value) for value in arguments[LISTS]]
        self._kept = arguments[LISTS]
        self._plan = _core.Plan(*arguments)
        self._shapes = [None if array is None else tuple(array.shape) for array in arguments[:BOUND]]

    def __call__(self, query: Array, key: Array, value: Array, *, mask: Optional[Array] = None,
                 bias: Optional[Array] = None, out: Optional[Array] = None, lse: Optional[Array] = None,
                 weights: Optional[Array] = None) -> Any:
        """Takes mask and bias as planned. Makes planned out, lse and weights that are not given, contiguous and out of
        the query's type; those planned otherwise must be given."""
        if type(query) is not numpy.ndarray:
            query = as_array("query", query)
            if is_tensor(query):
                check_not_traced(query)
        check_no_gradient("query key value bias out lse weights", query, key, value, bias, out, lse, weights)
        given = out, lse, weights
        if out is None:
            out = new_array(query, self._shapes[3])
        if lse is None and self._shapes[6] is not None:
            lse = new_array(query, self._shapes[6], True)
        if weights is None and self._shapes[7] is not None:
            weights = new_array(query, self._shapes[7], True)
        self._plan.run(query, key, value, out, mask, bias, lse, weights)
        mark_written(*given)
        return results_of([None, None, None, out, None, None, lse, weights])
