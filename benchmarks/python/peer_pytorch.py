# SPDX-License-Identifier: MIT
"""PyTorch: scaled_dot_product_attention."""
import torch


class PyTorch:
    name = "pytorch"
    folds = True
    version = torch.__version__

    def __init__(self, threads):
        torch.set_num_threads(threads)

    def ways(self, problem):
        yield "sdpa", Attention(problem)


class Attention:
    def __init__(self, problem):
        case = problem.case
        self.query = torch.from_numpy(problem.query)
        self.caches = [(torch.from_numpy(key), torch.from_numpy(value)) for key, value in problem.caches]
        self.options = {"is_causal": case.causal, "enable_gqa": case.group > 1}

    @torch.inference_mode()
    def run(self, cache):
        key, value = self.caches[cache]
        self.out = torch.nn.functional.scaled_dot_product_attention(self.query, key, value, **self.options)

    def result(self):
        self.run(0)
        return self.out.numpy()
