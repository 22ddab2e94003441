# SPDX-License-Identifier: MIT
"""PyTorch: scaled_dot_product_attention."""
import torch

TORCH_TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f8_e4m3": torch.float8_e4m3fn,
               "f8_e5m2": torch.float8_e5m2}


def tensor_of(array, dtype):
    """A cache's array, without a copy."""
    return torch.from_numpy(array).view(TORCH_TYPES[dtype])


class PyTorch:
    name = "pytorch"
    folds = True
    version = torch.__version__

    def __init__(self, threads):
        torch.set_num_threads(threads)

    def ways(self, problem):
        case = problem.case
        if case.dtype in ("f32", "f16", "bf16") and not case.page_tokens and not case.value_part:
            yield "sdpa", Attention(problem)


class Attention:
    def __init__(self, problem):
        case = problem.case
        self.query = torch.from_numpy(problem.query).to(TORCH_TYPES[case.dtype])
        self.caches = [[tensor_of(array, case.dtype) for array in cache] for cache in problem.caches]
        self.options = {"is_causal": case.causal, "enable_gqa": case.group > 1}

    @torch.inference_mode()
    def run(self, cache):
        key, value = self.caches[cache]
        self.out = torch.nn.functional.scaled_dot_product_attention(self.query, key, value, **self.options)

    def result(self):
        self.run(0)
        return self.out.float().numpy()
