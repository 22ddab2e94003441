# SPDX-License-Identifier: MIT
"""ONNX Runtime: the operator Attention, and com.microsoft.GroupQueryAttention, which is causal, on a cache that
holds all keys but the newest."""
import numpy
import onnxruntime
from onnx import TensorProto, helper


class OnnxRuntime:
    name = "onnxruntime"
    folds = True
    version = onnxruntime.__version__

    def __init__(self, threads):
        self.threads = threads

    def ways(self, problem):
        case = problem.case
        if case.dtype not in ("f32", "f16") or case.page_tokens or case.value_part:
            return
        yield "Attention", Attention(problem, self.threads)
        if case.causal or case.query_length == 1:
            yield "GroupQueryAttention", GroupQueryAttention(problem, self.threads)


def session(node, inputs, outputs, threads):
    def describe(arrays):
        return [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in arrays.items()]

    graph = helper.make_graph([node], "attention", describe(inputs), describe(outputs))
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")  # between runs, where others are measured
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def bound(runner, inputs, outputs):
    """The arrays in place, without copies. A binding knows addresses only, so the arrays live as long as it does."""
    binding = runner.io_binding()
    binding.arrays = inputs, outputs
    for bind, arrays in ((binding.bind_input, inputs), (binding.bind_output, outputs)):
        for name, array in arrays.items():
            bind(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
    return binding


def query_of(problem):
    """In the type of keys and values."""
    return problem.query.astype(problem.caches[0][0].dtype)


def tokens_first(array):
    """[batch, heads, tokens, dim] as [batch, tokens, heads * dim]."""
    batch, heads, tokens, dim = array.shape
    return numpy.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(batch, tokens, heads * dim)


class Attention:
    def __init__(self, problem, threads):
        query = query_of(problem)
        self.out = {"out": numpy.zeros_like(query)}
        node = helper.make_node("Attention", ["query", "key", "value"], ["out"], is_causal=int(problem.case.causal))
        inputs = [{"query": query, "key": key, "value": value} for key, value in problem.caches]
        self.session = session(node, inputs[0], self.out, threads)
        self.bindings = [bound(self.session, arrays, self.out) for arrays in inputs]

    def run(self, cache):
        self.session.run_with_iobinding(self.bindings[cache])

    def result(self):
        self.run(0)
        return self.out["out"]


class GroupQueryAttention:
    """The newest keys and values are those that the cache has there already, so a run changes nothing."""

    def __init__(self, problem, threads):
        case, tokens = problem.case, problem.case.query_length
        self.shape = (case.batch, tokens, case.query_heads, case.head_dim)
        self.inputs = {"query": tokens_first(query_of(problem)), "new_key": None, "new_value": None,
                       "past_key": None, "past_value": None,
                       "last": numpy.full(case.batch, case.kv_length - 1, numpy.int32),
                       "total": numpy.array([case.kv_length], numpy.int32)}
        self.out = numpy.zeros_like(self.inputs["query"])
        node = helper.make_node("GroupQueryAttention", list(self.inputs), ["out", "key", "value"],
                                domain="com.microsoft", num_heads=case.query_heads, kv_num_heads=case.kv_heads)
        self.kept, self.session, self.bindings = [], None, []
        for key, value in problem.caches:
            newest = [tokens_first(array[:, :, -tokens:]) for array in (key, value)]
            inputs = self.inputs | {"new_key": newest[0], "new_value": newest[1], "past_key": key, "past_value": value}
            outputs = {"out": self.out, "key": key, "value": value}
            self.kept.append(newest)
            self.session = self.session or session(node, inputs, outputs, threads)
            self.bindings.append(bound(self.session, inputs, outputs))

    def run(self, cache):
        self.session.run_with_iobinding(self.bindings[cache])

    def result(self):
        self.run(0)
        return self.out.reshape(self.shape).transpose(0, 2, 1, 3)
