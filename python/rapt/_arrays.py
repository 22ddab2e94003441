# SPDX-License-Identifier: MIT
"""Converts lists and numbers to arrays, and makes results of the query's kind."""
import sys
from typing import Any, Sequence, Union

import numpy

Array = Any  # numpy.ndarray, torch.Tensor, or whatever has __dlpack__
Integers = Union[int, Sequence[int], Array]
Floats = Union[Sequence[float], Array]


def is_tensor(array: Array) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_forward() -> bool:
    """Whether forward-mode differentiation is active; PyTorch's public interface does not say."""
    return getattr(sys.modules["torch"].autograd.forward_ad, "_current_level", -1) >= 0


def has_tangent(tensor: Array) -> bool:
    """Whether forward-mode differentiation is active, and the tensor's derivative is part of it."""
    return is_forward() and sys.modules["torch"].autograd.forward_ad.unpack_dual(tensor).tangent is not None


def check_no_gradient(names: str, *arrays: Array) -> None:
    """rapt has no derivative; a result that silently lacks a gradient would be a trap. names: of the arrays."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    backward, forward = torch.is_grad_enabled(), is_forward()
    if not (backward or forward):
        return
    for place, array in enumerate(arrays):
        if array is None or type(array) is numpy.ndarray or not isinstance(array, torch.Tensor):
            continue
        if backward and array.requires_grad:
            raise ValueError(f"{names.split()[place]}: it requires a gradient, and rapt has no backward pass; "
                             "call it under torch.no_grad() or with detached tensors")
        if forward and has_tangent(array):
            raise ValueError(f"{names.split()[place]}: it has a tangent (forward-mode differentiation), and rapt "
                             "computes no derivative")


def check_not_traced(query: Array) -> None:
    """Tracing would record none of this, only new memory as the result."""
    torch = sys.modules["torch"]
    traces = torch._C._get_tracing_state() is not None
    if torch._C._len_torch_dispatch_stack() > 0:  # of modes; only this one records
        from torch.fx.experimental.proxy_tensor import get_proxy_mode
        traces = traces or get_proxy_mode() is not None
    if traces or (type(query) is not torch.Tensor and type(query).__name__ == "FakeTensor"):
        raise TypeError("query: a call of rapt.attention cannot be traced; torch.ops.rapt.attention can (import "
                        "rapt.torch)")


def as_array(name: str, array: Array) -> Array:
    """A tensor as it is, anything else as an ndarray if possible."""
    if is_tensor(array):
        return array
    if isinstance(array, numpy.ndarray):
        return array.view(numpy.ndarray)
    if hasattr(array, "__dlpack__"):
        try:
            return numpy.from_dlpack(array)
        except (BufferError, RuntimeError) as error:
            torch = sys.modules.get("torch")  # it has bfloat16
            if torch is None:
                raise TypeError(f"{name}: NumPy cannot see it: {error}") from None
            return torch.from_dlpack(array)
    try:
        return numpy.asarray(memoryview(array))
    except TypeError:
        raise TypeError(f"{name}: {type(array)} is not an array: it has neither the buffer protocol nor "
                        "__dlpack__") from None


def shape_of(name: str, array: Array, dims: int) -> "tuple[int, ...]":
    """The shape of an array of at least dims dimensions."""
    try:
        shape = tuple(array.shape)
    except (AttributeError, TypeError):
        raise TypeError(f"{name}: {type(array)} is not an array: it has no shape") from None
    if len(shape) < dims:
        raise ValueError(f"{name}: its shape is {list(shape)}; at least {dims} dimensions are required")
    return shape


def new_array(like: Array, shape: tuple[int, ...], as_float32: bool = False) -> Array:
    if type(like) is numpy.ndarray:
        return numpy.empty(shape, numpy.float32 if as_float32 else like.dtype)
    torch = sys.modules["torch"]
    if as_float32:
        return like.new_empty(shape, dtype=torch.float32)
    return torch.empty_like(like) if like.shape == shape and like.is_contiguous() else like.new_empty(shape)


def mark_written(*arrays: Any) -> None:
    """Tells autograd of tensors that a call wrote: a gradient that requires their former numbers is an error then."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for array in arrays:
        if isinstance(array, torch.Tensor):
            torch.autograd.graph.increment_version(array)


def own_copy(array: Array) -> Array:
    """Copies a list or factors, so that a plan does not see changes."""
    if array is None or isinstance(array, bool):
        return array
    return array.clone() if is_tensor(array) else numpy.array(array)


def integers(name: str, value: "Integers | None", count: int) -> Array:
    """One per sequence, also if there is one for all."""
    if value is None or (is_tensor(value) or type(value) is numpy.ndarray) and value.ndim > 0:
        return value
    try:
        numbers = numpy.asarray(numpy.from_dlpack(value) if hasattr(value, "__dlpack__") else value)
    except ValueError:  # lists of different lengths
        numbers = None
    if numbers is None or numbers.size > 0 and (numbers.dtype.kind not in "iu" or int(numbers.max()) >= 2**63):
        raise TypeError(f"{name}: expected 64-bit integers, not {value!r}")
    if numbers.size == 0:
        return numpy.zeros(numbers.shape, numpy.int64)
    return numpy.full(count, numbers, numpy.int64) if numbers.ndim == 0 else numbers.astype(numpy.int64)


def floats(name: str, value: "Floats | bool | None") -> Array:
    """Contiguous float32, as the library requires per-head factors."""
    if isinstance(value, (bool, numpy.bool_)):
        return True if value else None
    if value is None:
        return value
    if is_tensor(value):
        return value.detach().float().contiguous()
    try:
        return numpy.ascontiguousarray(value, numpy.float32)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected numbers, not {value!r}") from None
