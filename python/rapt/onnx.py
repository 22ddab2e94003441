# SPDX-License-Identifier: MIT
"""ONNX: the operator Attention (opset 23 and later) by rapt, for onnx's reference evaluator, and a backend with it.

    evaluator = onnx.reference.ReferenceEvaluator(model, new_ops=[rapt.onnx.Attention])
    outputs = rapt.onnx.prepare(model).run(inputs)
"""
from typing import Any, Optional, Sequence

import numpy
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from ._attention import attention

WEIGHTS_OF_MODES = ("raw", "softcap", "masked", "softmax")  # qk_matmul_output_mode


def _with_heads(array: numpy.ndarray, heads: Optional[int]) -> numpy.ndarray:
    """[batch, heads, tokens, dim], as a view, of [batch, tokens, heads * dim]."""
    if array.ndim == 4:
        return array
    if not heads:
        raise ValueError("q_num_heads and kv_num_heads are required where inputs have three dimensions")
    return array.reshape(*array.shape[:2], heads, array.shape[2] // heads).swapaxes(1, 2)


def _padded(mask: Optional[numpy.ndarray], keys: int) -> Optional[numpy.ndarray]:
    """Excludes keys past the mask's end."""
    if mask is None or mask.shape[-1] == keys:
        return mask
    rows = [(0, 0)] * (mask.ndim - 1)
    excluded = False if mask.dtype == numpy.bool_ else -numpy.inf
    return numpy.pad(mask, [*rows, (0, keys - mask.shape[-1])], constant_values=excluded)


def _without_padding(mask: Optional[numpy.ndarray], lengths: numpy.ndarray, keys: int) -> numpy.ndarray:
    """A bool mask that also excludes keys from lengths[b] on."""
    is_key = (numpy.arange(keys) < lengths[:, None])[:, None, None]
    return is_key if mask is None else mask & is_key


def compute(query: numpy.ndarray, key: numpy.ndarray, value: numpy.ndarray, mask: Optional[numpy.ndarray] = None,
            past_key: Optional[numpy.ndarray] = None, past_value: Optional[numpy.ndarray] = None,
            nonpad_kv_seqlen: Optional[numpy.ndarray] = None, *, scale: Optional[float] = None, is_causal: int = 0,
            q_num_heads: Optional[int] = None, kv_num_heads: Optional[int] = None, softcap: float = 0.0,
            qk_matmul_output_mode: int = 0, left_window_size: int = -1, right_window_size: int = -1
            ) -> "tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, numpy.ndarray]":
    """The operator's outputs: Y, present_key, present_value, qk_matmul_output. Computes in float32, whatever
    softmax_precision says."""
    if qk_matmul_output_mode not in range(len(WEIGHTS_OF_MODES)):
        raise ValueError(f"qk_matmul_output_mode: {qk_matmul_output_mode} is outside 0 ... {len(WEIGHTS_OF_MODES) - 1}")
    has_heads, dtype = query.ndim == 4, query.dtype
    query = _with_heads(query, q_num_heads)
    key, value = _with_heads(key, kv_num_heads), _with_heads(value, kv_num_heads)
    position = 0
    if past_key is not None and past_value is not None:
        position = past_key.shape[2]
        key, value = numpy.concatenate((past_key, key), 2), numpy.concatenate((past_value, value), 2)
    arrays = [array.astype(numpy.float32) if array.dtype == numpy.float64 else array for array in (query, key, value)]
    lengths = None if nonpad_kv_seqlen is None else nonpad_kv_seqlen.reshape(-1).astype(numpy.int64)
    if lengths is not None:
        position = lengths - query.shape[2]
    mask = _padded(mask, key.shape[2])
    mask, bias = (mask, None) if mask is not None and mask.dtype == numpy.bool_ else (None, mask)
    if bias is not None and bias.dtype == numpy.float64:
        bias = bias.astype(numpy.float32)
    if lengths is not None and WEIGHTS_OF_MODES[qk_matmul_output_mode] in ("raw", "softcap"):  # products with all keys
        mask, lengths = _without_padding(mask, lengths, key.shape[2]), None
    window = (left_window_size, right_window_size) if max(left_window_size, right_window_size) >= 0 else None
    out, weights = attention(
        *arrays, mask=mask, bias=bias, causal=bool(is_causal), scale=scale, softcap=softcap or None, window=window,
        query_position=position if is_causal or window else None, kv_lengths=lengths, weights=True,
        weights_kind=WEIGHTS_OF_MODES[qk_matmul_output_mode])
    if not has_heads:
        out = out.swapaxes(1, 2).reshape(out.shape[0], out.shape[2], out.shape[1] * out.shape[3])
    return out.astype(dtype, copy=False), key, value, weights.astype(dtype)


class Attention(OpRun):
    """For ReferenceEvaluator(model, new_ops=[Attention])."""

    op_domain = ""

    def _run(self, Q: numpy.ndarray, K: numpy.ndarray, V: numpy.ndarray, attn_mask: Any = None, past_key: Any = None,
             past_value: Any = None, nonpad_kv_seqlen: Any = None, scale: Any = None, is_causal: Any = None,
             q_num_heads: Any = None, kv_num_heads: Any = None, softmax_precision: Any = None, softcap: Any = None,
             qk_matmul_output_mode: Any = None, left_window_size: Any = None, right_window_size: Any = None
             ) -> "tuple[numpy.ndarray, ...]":
        def number(value: Any, default: int) -> int:
            return default if value is None else int(value)

        return compute(Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen, scale=scale,
                       is_causal=number(is_causal, 0), q_num_heads=q_num_heads, kv_num_heads=kv_num_heads,
                       softcap=softcap or 0.0, qk_matmul_output_mode=number(qk_matmul_output_mode, 0),
                       left_window_size=number(left_window_size, -1), right_window_size=number(right_window_size, -1))


class _Prepared(BackendRep):
    def __init__(self, model: ModelProto) -> None:
        self.evaluator = ReferenceEvaluator(model, new_ops=[Attention])

    def run(self, inputs: Any, **kwargs: Any) -> "tuple[Any, ...]":
        names = list(self.evaluator.input_names)
        if len(inputs) > len(names):
            raise ValueError(f"{len(inputs)} inputs; the model has {len(names)}")
        feeds = inputs if isinstance(inputs, dict) else dict(zip(names, inputs))
        return tuple(self.evaluator.run(None, feeds))


class RaptBackend(Backend):
    """onnx's own operators in NumPy, and Attention by rapt."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> _Prepared:
        if not cls.supports_device(device):
            raise ValueError(f"device: {device!r} is not CPU")
        super().prepare(model, device, **kwargs)
        return _Prepared(model)

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Sequence[Any], device: str = "CPU", **kwargs: Any) -> Any:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


prepare = RaptBackend.prepare
run_model = RaptBackend.run_model
supports_device = RaptBackend.supports_device
