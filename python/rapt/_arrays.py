# SPDX-License-Identifier: MIT
"""Arguments that are lists or numbers become arrays here; results become arrays of the query's kind."""
import sys
from numbers import Integral
from typing import Any, Sequence, Union

import numpy

Array = Any  # numpy.ndarray, torch.Tensor, or whatever has __dlpack__
Integers = Union[int, Sequence[int], Array]
Floats = Union[Sequence[float], Array]


def is_tensor(array: Array) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def check_no_gradient(**arrays: Array) -> None:
    """rapt has no backward pass; a result that silently has no gradient would be a trap."""
    if sys.modules["torch"].is_grad_enabled():
        for name, array in arrays.items():
            if getattr(array, "requires_grad", False):
                raise ValueError(f"{name}: it requires a gradient, and rapt has no backward pass; "
                                 "call it under torch.no_grad() or with detached tensors")


def new_array(like: Array, shape: tuple[int, ...], as_float32: bool = False) -> Array:
    if type(like) is numpy.ndarray:
        return numpy.empty(shape, numpy.float32 if as_float32 else like.dtype)
    torch = sys.modules["torch"]
    if as_float32:
        return like.new_empty(shape, dtype=torch.float32)
    return torch.empty_like(like) if like.shape == shape and like.is_contiguous() else like.new_empty(shape)


def own_copy(array: Array) -> Array:
    """Of a list or of factors, so that a plan does not see it change."""
    if array is None or isinstance(array, bool):
        return array
    return array.clone() if is_tensor(array) else numpy.array(array)


def integers(value: "Integers | None", count: int) -> Array:
    if value is None or hasattr(value, "__dlpack__"):
        return value
    if isinstance(value, Integral):
        return numpy.full(count, value, numpy.int64)
    return numpy.asarray(value, numpy.int64)


def floats(value: "Floats | bool | None") -> Array:
    """float32, contiguous, as the library requires factors per head."""
    if value is None or value is True:
        return value
    if value is False:
        return None
    if is_tensor(value):
        return value.detach().float().contiguous()
    return numpy.ascontiguousarray(value, numpy.float32)
