# SPDX-License-Identifier: MIT
"""Attention on CPUs, fast, and with the same bits on every machine.

    import numpy as np, rapt
    out = rapt.attention(query, key, value, causal=True)

query, key and value are NumPy arrays, PyTorch tensors or anything with DLPack, [batch, heads, tokens, head_dim], with
any strides, read without a copy. rapt.transformers, rapt.torch and rapt.onnx connect it to these packages.
"""
from ._attention import Plan, attention
from ._cache import Cache, Rotary
from ._info import __version__, info

__all__ = ["attention", "Plan", "Cache", "Rotary", "info", "__version__"]
