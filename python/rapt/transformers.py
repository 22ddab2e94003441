# SPDX-License-Identifier: MIT
"""Transformers: importing this module registers the attention "rapt".

    import rapt.transformers
    model = AutoModelForCausalLM.from_pretrained(..., attn_implementation="rapt")

Keys and values stay in the model's form: heads are not repeated, caches not copied. Masks are those of "sdpa": bool,
or none if they would be plainly causal.

GrowingCache is a cache that does not copy itself for each token:

    model.generate(**inputs, past_key_values=rapt.transformers.GrowingCache(model.config))
"""
import sys
from functools import lru_cache
from typing import Any, Iterator, Optional

import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

try:
    from transformers.utils.output_capturing import _active_collector as collector
except ImportError:  # other releases pass output_attentions on
    collector = None

from ._attention import attention as call
from ._growing import GrowingCache  # noqa: F401, users find it here
from .torch import attention as operator
from .torch import is_traced, obstacle, warn_once


def _plain(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
           mask: Optional[torch.Tensor], bias: Optional[torch.Tensor], sinks: Optional[torch.Tensor], dropout: float,
           scaling: Optional[float], softcap: Optional[float], causal: bool) -> "tuple[torch.Tensor, torch.Tensor]":
    """The same in PyTorch's operators, for gradients and other devices: "sdpa" lacks softcap and sinks."""
    key, value = (repeat_kv(tensor, query.shape[1] // tensor.shape[1]) for tensor in (key, value))
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if bias is not None:
        scores = scores + bias
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    if sinks is not None:
        column = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        weights = torch.cat([scores, column.to(scores.dtype)], -1).softmax(-1, torch.float32)[..., :-1]
    else:
        weights = scores.softmax(-1, torch.float32)
    weights = torch.nn.functional.dropout(weights.to(query.dtype), dropout, module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


def _parts(mask: Optional[torch.Tensor], position_bias: Optional[torch.Tensor], keys: int
           ) -> "tuple[Optional[torch.Tensor], Optional[torch.Tensor]]":
    """The bool mask, and what is added to the scores. Static caches' masks sometimes have more keys."""
    bias = position_bias
    if mask is not None:
        mask = mask[..., :keys]
        if mask.dtype != torch.bool:
            mask, bias = None, mask if bias is None else mask + bias
    return mask, bias


def _selected(mask: Optional[torch.Tensor], indices: torch.Tensor, queries: int, keys: int, causal: bool
              ) -> torch.Tensor:
    """The bool mask of models that choose keys: indices [batch, queries, chosen], among which only `mask` holds."""
    chosen = torch.zeros(indices.shape[0], queries, keys, dtype=torch.bool, device=indices.device)
    chosen = chosen.scatter(-1, indices.long(), True)[:, None]
    if mask is None:
        return chosen.tril() if causal else chosen
    mask = mask[..., :keys]
    return mask & chosen if mask.dtype == torch.bool else mask.masked_fill(~chosen, torch.finfo(mask.dtype).min)


def _wants_weights() -> bool:
    """Whether a model collects the weights of its layers, some of which do not pass output_attentions on."""
    hooks = collector.get() if collector else None
    return hooks is not None and any(key.endswith("attentions") for key in hooks)


def attention_forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                      attention_mask: Optional[torch.Tensor], dropout: float = 0.0, scaling: Optional[float] = None,
                      is_causal: Optional[bool] = None, softcap: Optional[float] = None,
                      sliding_window: Optional[int] = None, s_aux: Optional[torch.Tensor] = None,
                      position_bias: Optional[torch.Tensor] = None, output_attentions: bool = False,
                      indices: Optional[torch.Tensor] = None,
                      **kwargs: Any) -> "tuple[torch.Tensor, Optional[torch.Tensor]]":
    """query [batch, heads, tokens, dim], key and value [batch, kv_heads, tokens, dim]; returns [batch, tokens, heads,
    dim] and, with output_attentions, the weights. sliding_window is in the mask: there is none where it shows all."""
    for name in ("block_indices", "sinks"):
        if kwargs.get(name) is not None:
            raise ValueError(f'{type(module).__name__}: rapt does not know its {name}; use attn_implementation="eager"')
    queries, keys = query.shape[2], key.shape[2]
    output_attentions = output_attentions or _wants_weights()
    causal = attention_mask is None and queries > 1 and bool(
        getattr(module, "is_causal", True) if is_causal is None else is_causal)
    if indices is not None:
        attention_mask, causal = _selected(attention_mask, indices, queries, keys, causal), False
    mask, bias = _parts(attention_mask, position_bias, keys)
    reason = obstacle(query, key, value, bias, dropout)
    if kwargs.get("cache") is not None:
        reason = "the model keeps a paged cache of Transformers"
    if reason is None and torch.is_grad_enabled() and s_aux is not None and s_aux.requires_grad:
        reason = "gradients are required, and rapt has no backward pass (torch.no_grad() says that they are not)"
    if reason:
        warn_once(reason)
        if softcap is None and s_aux is None:
            return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling,
                                          is_causal=is_causal, position_bias=position_bias, **kwargs)
        return _plain(module, query, key[:, :, :queries] if causal else key, value[:, :, :queries] if causal else value,
                      mask, bias, s_aux, dropout, scaling, softcap, causal)
    options = dict(mask=mask, bias=bias, sinks=s_aux, causal=causal, scale=scaling, softcap=softcap,
                   query_position="top-left" if causal else None)
    if is_traced() and not output_attentions:
        return operator(query, key, value, **options).transpose(1, 2).contiguous(), None
    if is_traced():  # the operator has no weights
        return _plain(module, query, key[:, :, :queries] if causal else key, value[:, :, :queries] if causal else value,
                      mask, bias, s_aux, dropout, scaling, softcap, causal)
    out = query.new_empty(query.shape[0], queries, query.shape[1], value.shape[3])
    if not output_attentions:
        call(query, key, value, out=out.transpose(1, 2), **options)
        return out, None
    _, weights = call(query, key, value, out=out.transpose(1, 2), weights=True, **options)
    return out, weights.to(query.dtype)


def _subclasses(of: type) -> "Iterator[type]":
    for each in of.__subclasses__():
        yield each
        yield from _subclasses(each)


def _uses_functions(model: type) -> bool:
    return bool(getattr(model, "_supports_sdpa", False) or getattr(model, "_supports_attention_backend", False))


@lru_cache(maxsize=None)
def _attends_by_itself(config_class: type) -> bool:
    """Whether a configuration's model does not use Transformers' attention functions: it would take this one's mask
    and compute attention itself."""
    try:
        found = transformers.MODEL_MAPPING[config_class]
    except KeyError:  # part of another model: those that are loaded
        loaded = [model for model in _subclasses(transformers.PreTrainedModel)
                  if getattr(model, "config_class", None) is config_class]
        return bool(loaded) and not any(
            _uses_functions(model) or hasattr(sys.modules.get(model.__module__), "ALL_ATTENTION_FUNCTIONS")
            for model in loaded)
    return not any(map(_uses_functions, found if isinstance(found, (tuple, list)) else (found,)))


def mask_of_attention(*args: Any, config: Any = None, **kwargs: Any) -> Optional[torch.Tensor]:
    """Bools [batch, 1, queries, keys], true = attend, or None: causal from the first key on, or everything."""
    if config is not None and _attends_by_itself(type(config)):
        raise ValueError(f"{type(config).__name__}: Transformers' model computes attention itself and does not call "
                         'rapt; use attn_implementation="eager"')
    if getattr(config, "num_kv_shared_layers", 0):
        kwargs["allow_is_causal_skip"] = False  # layers that share keys may attend with the last queries only
    return sdpa_mask(*args, config=config, **kwargs)


def register(name: str = "rapt") -> None:
    """Importing the module does it with this name."""
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, mask_of_attention)


register()
