# SPDX-License-Identifier: MIT
"""rapt.transformers.GrowingCache, a cache of Transformers that grows in place."""
import inspect
from functools import partial
from typing import Any, Optional

import torch
import transformers
from transformers import DynamicCache, cache_utils

from .torch import is_traced

MORE_TOKENS = 64  # the least room to add: half of a few tokens is few
DynamicLayer: Any = getattr(cache_utils, "DynamicLayer", object)
HAS_LAYERS = "config" in inspect.signature(DynamicCache.__init__).parameters  # since Transformers 4.56


class _Room:
    """Memory [batch, kv_heads, capacity, dim], of which a layer's keys or values are the first tokens."""

    def __init__(self, capacity: int = 0) -> None:
        self.capacity = capacity  # while it suffices
        self.memory: Optional[torch.Tensor] = None

    def holds(self, tokens: Optional[torch.Tensor], count: int = 0) -> bool:
        """Whether tokens are the start of this memory, and it has room for count and is writable."""
        memory = self.memory
        return (memory is not None and tokens is not None and tokens.data_ptr() == memory.data_ptr()
                and tokens.stride() == memory.stride() and tokens.shape[:-2] == memory.shape[:-2]
                and count <= memory.shape[-2] and (torch.is_inference_mode_enabled() or not memory.is_inference()))

    def take(self, like: torch.Tensor, batch: int, length: int, dtype: torch.dtype) -> torch.Tensor:
        """Takes new memory; returns its first tokens, unwritten."""
        tokens = self.capacity if length <= self.capacity else length + max(length // 2, MORE_TOKENS)
        self.memory = like.new_empty((batch, *like.shape[1:-2], tokens, like.shape[-1]), dtype=dtype)
        return self.memory.narrow(-2, 0, length)

    def append(self, tokens: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """tokens, which may be this memory's last ones, part of them, or others, then new."""
        length = tokens.shape[-2] if tokens.numel() else 0
        total = length + new.shape[-2]
        dtype = torch.promote_types(tokens.dtype, new.dtype)
        if not self.holds(tokens, total) or dtype != tokens.dtype:
            out = self.take(new, new.shape[0], total, dtype)
            if length:
                out.narrow(-2, 0, length).copy_(tokens)
        else:
            out = self.memory.narrow(-2, 0, total)
        out.narrow(-2, length, new.shape[-2]).copy_(new)
        return out

    def reorder(self, tokens: torch.Tensor, order: "list[int]") -> torch.Tensor:
        out = self.take(tokens, len(order), tokens.shape[-2], tokens.dtype)
        for row, source in zip(out, order):
            row.copy_(tokens[source])
        return out


def _fit(tokens: torch.Tensor, new: torch.Tensor) -> bool:
    """Whether new can follow tokens; copying alone would broadcast, and move between devices."""
    return tokens.device == new.device and (tokens.numel() == 0 or (
        tokens.shape[:-2] == new.shape[:-2] and tokens.shape[-1] == new.shape[-1]))


class GrowingLayer(DynamicLayer):
    """A layer whose keys and values are views of memory with room for more. If something replaces them, the next update
    copies that once."""

    def __init__(self, capacity: int = 0) -> None:
        super().__init__()
        self._capacity = capacity
        self._rooms = (_Room(capacity), _Room(capacity))

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
               ) -> "tuple[torch.Tensor, torch.Tensor]":
        """Copies only new tokens. If gradients may be recorded or the model is traced, does what Transformers does: a
        backward pass requires unchanged keys."""
        if torch.is_grad_enabled() or is_traced():
            return super().update(key_states, value_states, *args, **kwargs)
        if self.keys is None:  # initialises with no tokens: the method differs between versions
            super().update(key_states[..., :0, :], value_states[..., :0, :], *args, **kwargs)
        if not (_fit(self.keys, key_states) and _fit(self.values, value_states)):
            return super().update(key_states, value_states, *args, **kwargs)  # raises errors
        self.keys = self._rooms[0].append(self.keys, key_states)
        self.values = self._rooms[1].append(self.values, value_states)
        return self.keys, self.values

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Copies beams to memory with room, which saves the next update a copy."""
        if self.get_seq_length() > 0:
            order = beam_idx.tolist()
            self.keys = self._rooms[0].reorder(self.keys, order)
            self.values = self._rooms[1].reorder(self.values, order)

    def _release(self) -> None:
        """Drops memory that keys and values left."""
        for room, tokens in zip(self._rooms, (self.keys, self.values)):
            if not room.holds(tokens):
                room.memory = None

    def reset(self) -> None:
        super().reset()
        self._release()

    def offload(self) -> None:
        super().offload()
        self._release()

    def __getstate__(self) -> dict:
        """Copies of a layer must not share memory to write to, and files do not require the room."""
        keys, values = (tokens.clone() if room.holds(tokens) else tokens
                        for room, tokens in zip(self._rooms, (self.keys, self.values)))
        return {**self.__dict__, "keys": keys, "values": values,
                "_rooms": (_Room(self._capacity), _Room(self._capacity))}


class GrowingCache(DynamicCache):
    """Transformers' DynamicCache, but with new tokens appended in place. DynamicCache copies all keys and values of all
    layers for each token, which takes as long as attention or longer.

        cache = rapt.transformers.GrowingCache(model.config)
        model.generate(**inputs, past_key_values=cache)

    It works with every attention ("sdpa" and "eager", too), and for the decoder's own keys in an EncoderDecoderCache.
    config decides, as for DynamicCache, which layers have sliding windows or states; they remain Transformers' own, as
    they are short. Further options are those of DynamicCache, by name.

    capacity: the first token allocates room for this many; until then no token is ever copied.

    Memory: at most one and a half times that of the cache at its longest, or room for 64 tokens more than that, or for
    capacity. While a layer grows, its old keys or values exist as well; so do those of all layers from
    batch_repeat_interleave or batch_select_indices to the next token. crop keeps the memory, reset frees it.

    A layer's tensors are views: the next tokens overwrite what crop removed from them. Use the cache with
    torch.no_grad() or inference_mode(), as generate does; if gradients may be recorded it copies everything, as
    DynamicCache does.
    """

    def __init__(self, config: Any = None, *, capacity: int = 0, **options: Any) -> None:
        if not HAS_LAYERS:
            raise ImportError(f"GrowingCache requires Transformers 4.56 or later; this is {transformers.__version__}")
        if config is not None and not hasattr(config, "get_text_config"):
            raise TypeError(f"config: it is a {type(config).__name__}; expected a model's configuration (model.config)")
        if capacity < 0:
            raise ValueError(f"capacity: {capacity} is below 0")
        super().__init__(config=config, **options)
        self.layers = [self._growing(layer, capacity) for layer in self.layers]
        if self.layer_class_to_replicate is DynamicLayer:
            self.layer_class_to_replicate = partial(GrowingLayer, capacity)

    @staticmethod
    def _growing(layer: Any, capacity: int) -> Any:
        if type(layer) is not DynamicLayer:
            return layer
        growing = GrowingLayer(capacity)
        growing.__dict__.update(layer.__dict__)  # options may have added tokens
        return growing
