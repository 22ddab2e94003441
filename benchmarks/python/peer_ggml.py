# SPDX-License-Identifier: MIT
"""ggml: the operator flash_attn_ext of its CPU backend, on rapt's arrays. The library is that of the package ggml-py
or llama-cpp-python; only functions of its C interface are used, since Python classes differ from release to release."""
import ctypes
import importlib.util
import pathlib
from ctypes import c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p

import numpy

from caches import aligned

GGML_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "iq4_nl": 20, "bf16": 30}
SIGNATURES = {
    "ggml_flash_attn_ext": (c_void_p, 5 * [c_void_p] + 3 * [c_float]),
    "ggml_new_tensor_4d": (c_void_p, [c_void_p, c_int] + 4 * [c_int64]),
    "ggml_new_graph": (c_void_p, [c_void_p]),
    "ggml_build_forward_expand": (None, 2 * [c_void_p]),
    "ggml_free": (None, [c_void_p]),
    "ggml_version": (c_char_p, []),
    "ggml_backend_tensor_alloc": (c_int, 3 * [c_void_p]),
    "ggml_backend_cpu_buffer_from_ptr": (c_void_p, [c_void_p, c_size_t]),
    "ggml_backend_buffer_free": (None, [c_void_p]),
    "ggml_backend_cpu_init": (c_void_p, []),
    "ggml_backend_cpu_set_n_threads": (None, [c_void_p, c_int]),
    "ggml_backend_graph_compute": (c_int, 2 * [c_void_p]),
}


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


def load():
    """The functions, from whichever of the two libraries has them."""
    for package in ("ggml", "llama_cpp"):
        found = importlib.util.find_spec(package)
        if found and found.submodule_search_locations:
            folder = pathlib.Path(found.submodule_search_locations[0]) / "lib"
            libraries = [ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
                         for name in ("ggml-base", "ggml-cpu") for path in sorted(folder.glob(f"*{name}.*"))[:1]]
            if libraries:
                return libraries
    raise ImportError("neither ggml-py nor llama-cpp-python is installed")


LIBRARIES = load()


def call(name):
    for library in LIBRARIES:
        if hasattr(library, name):
            function = getattr(library, name)
            function.restype, function.argtypes = SIGNATURES[name]
            return function
    raise ImportError(f"this ggml has no {name}")


ggml = {name: call(name) for name in SIGNATURES if name != "ggml_version"}
ggml_init = LIBRARIES[0].ggml_init
ggml_init.restype, ggml_init.argtypes = c_void_p, [InitParams]


class Ggml:
    name = "ggml"
    folds = True
    # It adds up values of float16 in float16, and rounds queries to q8_0 or q8_1 for keys in blocks.
    errors = {"f16": 0.05} | dict.fromkeys(("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl"), 0.015)
    version = call("ggml_version")().decode() if hasattr(LIBRARIES[0], "ggml_version") else "?"

    def __init__(self, threads):
        self.backend = ggml["ggml_backend_cpu_init"]()
        ggml["ggml_backend_cpu_set_n_threads"](self.backend, threads)

    def ways(self, problem):
        case = problem.case
        if case.dtype in GGML_TYPES and case.kind == "decode" and not case.page_tokens:
            yield "flash_attn_ext", Attention(problem, self.backend)


class Attention:
    """A graph of one operator for each cache; tensors lie in the arrays."""

    def __init__(self, problem, backend):
        case = problem.case
        self.problem, self.backend, self.buffers = problem, backend, []
        self.out = aligned((case.batch, case.query_length, case.query_heads, case.head_dim), numpy.float32)
        self.query = aligned(problem.query.shape, numpy.float32)
        self.query[:] = problem.query
        self.context = ggml_init(InitParams((len(problem.caches) + 1) << 20, None, True))
        self.graphs = [self.graph(case, *cache) for cache in problem.caches]

    def placed(self, tensor, array):
        buffer = ggml["ggml_backend_cpu_buffer_from_ptr"](array.ctypes.data, array.nbytes)
        self.buffers.append(buffer)
        if ggml["ggml_backend_tensor_alloc"](buffer, tensor, array.ctypes.data) != 0:
            raise RuntimeError("ggml takes no tensor at this address")
        return tensor

    def tensor(self, dtype, array, heads, tokens):
        case = self.problem.case
        return self.placed(ggml["ggml_new_tensor_4d"](self.context, GGML_TYPES[dtype], case.head_dim, tokens, heads,
                                                      case.batch), array)

    def graph(self, case, key, value):
        query = self.tensor("f32", self.query, case.query_heads, case.query_length)
        keys, values = (self.tensor(case.dtype, array, case.kv_heads, case.kv_length) for array in (key, value))
        out = ggml["ggml_flash_attn_ext"](self.context, query, keys, values, None, case.head_dim**-0.5, 0, 0)
        graph = ggml["ggml_new_graph"](self.context)
        ggml["ggml_build_forward_expand"](graph, self.placed(out, self.out))
        return graph

    def run(self, cache):
        if ggml["ggml_backend_graph_compute"](self.backend, self.graphs[cache]) != 0:
            raise RuntimeError("ggml_backend_graph_compute fails")

    def result(self):
        self.run(0)
        return self.out.transpose(0, 2, 1, 3)

    def __del__(self):
        ggml["ggml_free"](self.context)
        for buffer in self.buffers:
            ggml["ggml_backend_buffer_free"](buffer)
