# SPDX-License-Identifier: MIT
"""PyTorch: an operator that torch.compile and torch.export trace, and scaled_dot_product_attention by rapt.

    with rapt.torch.sdpa():
        model(...)
"""
import types
import warnings
from typing import Any, Optional

import torch
from torch.overrides import TorchFunctionMode

from . import _core  # noqa: F401, reports the module's own errors first
from ._arrays import has_tangent
from ._attention import attention as call

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SDPA = torch.nn.functional.scaled_dot_product_attention


@torch.library.custom_op("rapt::attention", mutates_args=(), device_types="cpu")
def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Optional[torch.Tensor] = None,
              bias: Optional[torch.Tensor] = None, sinks: Optional[torch.Tensor] = None, causal: bool = False,
              scale: Optional[float] = None, softcap: Optional[float] = None, window: Optional[int] = None,
              query_position: Optional[str] = None) -> torch.Tensor:
    """rapt.attention as an operator, torch.ops.rapt.attention, with a contiguous result and no gradient."""
    with torch.no_grad():
        return call(query, key, value, mask=mask, bias=bias, sinks=sinks, causal=causal, scale=scale, softcap=softcap,
                    window=window, query_position=query_position)


@attention.register_fake
def _(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return query.new_empty(*query.shape[:-1], value.shape[-1])


def is_traced() -> bool:
    """Whether there are no values: torch.compile and torch.export record calls."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def obstacle(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: Optional[torch.Tensor] = None,
             dropout: float = 0.0) -> Optional[str]:
    """Why rapt cannot compute this, or None."""
    for tensor in (query, key, value) if bias is None else (query, key, value, bias):
        if not is_traced() and torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return ("a transformation of torch.func is active (under vmap torch.ops.rapt.attention computes one "
                    "example after the other)")
        if tensor.is_nested:
            return "tensors are nested"
        if not is_traced() and type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return f"tensors are of the class {type(tensor).__name__}"
        if tensor.device.type != "cpu":
            return f"tensors are on {tensor.device}, and rapt computes on CPUs"
    for tensor in (query, key, value):
        if tensor.dtype not in DTYPES:
            return f"tensors are {tensor.dtype}, and rapt takes float32, float16 and bfloat16"
    if dropout > 0:
        return "dropout is active"
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad
                                       for tensor in (query, key, value, bias)):
        return "gradients are required, and rapt has no backward pass (torch.no_grad() says that they are not)"
    if not is_traced() and any(tensor is not None and has_tangent(tensor) for tensor in (query, key, value, bias)):
        return "forward-mode differentiation is active, and rapt computes no derivative"
    if query.shape[-1] > 1024 or value.shape[-1] > 1024:
        return "heads are larger than 1024"
    return None


MOST_SCALE = 2.0**127 / 1.45  # times log2(e) it is finite in float32

_said: "set[str]" = set()


def warn_once(reason: str) -> None:
    if reason not in _said:
        _said.add(reason)
        warnings.warn(f"rapt: PyTorch computes this attention, since {reason}", RuntimeWarning, stacklevel=3)


def _broadcast(mask: Optional[torch.Tensor], keys: int) -> Optional[torch.Tensor]:
    """Broadcasts along keys, which rapt.attention leaves to its callers."""
    return mask if mask is None or mask.shape[-1] == keys else mask.expand(*mask.shape[:-1], keys)


def is_refused(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Optional[torch.Tensor],
               causal: bool) -> bool:
    """Whether PyTorch must report an error, or compute what newer versions accept."""
    if not query.dtype == key.dtype == value.dtype:
        return True
    return mask is not None and (causal or mask.dim() < 2 or mask.dtype not in (torch.bool, torch.float32, query.dtype))


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Optional[torch.Tensor] = None,
           dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None,
           enable_gqa: bool = False) -> torch.Tensor:
    """scaled_dot_product_attention, by rapt if it can."""
    given = query, key, value, attn_mask  # PyTorch casts them itself
    if torch.is_autocast_enabled("cpu"):
        query, key, value, attn_mask = (
            tensor.to(torch.get_autocast_dtype("cpu")) if tensor is not None and tensor.dtype in DTYPES else tensor
            for tensor in (query, key, value, attn_mask))
    if is_refused(query, key, value, attn_mask, is_causal):
        return SDPA(*given, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    is_bool = attn_mask is not None and attn_mask.dtype == torch.bool
    reason = obstacle(query, key, value, attn_mask, dropout_p)
    if reason:
        pass
    elif scale is not None and not is_traced() and not abs(scale) < MOST_SCALE:
        reason = f"scale is {scale}"
    elif not 2 <= query.dim() <= 4 or key.shape[:-3] != query.shape[:-3] or value.shape[:-3] != query.shape[:-3]:
        reason = f"the query's shape is {list(query.shape)} and the key's {list(key.shape)}"
    elif 0 in (query.shape[-1], value.shape[-1], *query.shape[-3:-2], *key.shape[-3:-2]):
        reason = f"a size is 0: the query's shape is {list(query.shape)} and the value's {list(value.shape)}"
    elif enable_gqa and key.shape[-3:-2] != value.shape[-3:-2]:
        reason = f"the key's shape is {list(key.shape)} and the value's {list(value.shape)}"
    elif not enable_gqa and not query.shape[-3:-2] == key.shape[-3:-2] == value.shape[-3:-2]:
        return SDPA(*given, dropout_p, is_causal, scale=scale)  # refuses, or broadcasts
    if reason:
        warn_once(reason)
        return SDPA(*given, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    attn_mask = _broadcast(attn_mask, key.shape[-2])
    options = dict(mask=attn_mask if is_bool else None, bias=None if is_bool else attn_mask, causal=is_causal,
                   scale=scale, query_position="top-left" if is_causal else None)
    return attention(query, key, value, **options) if is_traced() else call(query, key, value, **options)


def _with_rapt(function: Any) -> Any:
    """A copy of a function of torch.nn.functional that calls attend, and skips modes, which called it."""
    names = {**vars(torch.nn.functional), "scaled_dot_product_attention": attend, "has_torch_function": lambda _: False}
    copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


# PyTorch calls the outermost of these with the mode, and inner calls without it.
BY_RAPT = {SDPA: attend, torch.nn.functional.multi_head_attention_forward: _with_rapt(
    torch.nn.functional.multi_head_attention_forward)}


class sdpa(TorchFunctionMode):
    """While active, in this thread, rapt computes torch.nn.functional.scaled_dot_product_attention on CPUs, also within
    torch.nn.MultiheadAttention and layers of torch.nn that have one. PyTorch computes what rapt does not (gradients,
    dropout, other devices, nested tensors, values with other heads than keys), with one warning."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return BY_RAPT.get(function, function)(*args, **(kwargs or {}))
