# SPDX-License-Identifier: MIT
"""OpenVINO: the operator ScaledDotProductAttention on arrays, and on a model's state, which is what its language
models do and the only form whose kernels read a cache once for a group of heads."""
import numpy
import openvino
from openvino import opset6, opset13

from truth import numbers_of


class OpenVino:
    name = "openvino"
    folds = False  # its kernels know groups, and are far slower with more query rows
    errors = {"i8": 0.015}  # it rounds numbers of int8 once more, to steps of its own
    version = openvino.__version__.split("-")[0]

    def __init__(self, threads):
        self.core = openvino.Core()
        self.options = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                        "ENABLE_CPU_PINNING": False}  # pinned threads wait where others share the machine

    def ways(self, problem):
        dtype = problem.case.dtype
        if dtype not in ("f32", "f16", "bf16", "i8") or problem.case.page_tokens or problem.case.value_part:
            return
        precisions = {"INFERENCE_PRECISION_HINT": "f32" if dtype == "i8" else dtype,
                      "KV_CACHE_PRECISION": "u8" if dtype == "i8" else dtype}

        def compile_model(model):
            return self.core.compile_model(model, "CPU", self.options | precisions)

        if problem.case.kind == "prefill" and dtype != "f32":
            return
        if problem.case.kind == "prefill":
            yield "arrays", OnArrays(problem, compile_model)
        else:
            yield "state", OnState(problem, compile_model)


class OnArrays:
    def __init__(self, problem, compile_model):
        key, value = problem.caches[0]
        inputs = [opset13.parameter(list(array.shape), numpy.float32) for array in (problem.query, key, value)]
        attention = opset13.scaled_dot_product_attention(*inputs, causal=problem.case.causal)
        self.request = compile_model(openvino.Model([attention], inputs)).create_infer_request()
        self.caches = [[openvino.Tensor(array, shared_memory=True) for array in cache] for cache in problem.caches]
        self.request.set_input_tensor(0, openvino.Tensor(problem.query, shared_memory=True))

    def run(self, cache):
        key, value = self.caches[cache]
        self.request.set_input_tensor(1, key)
        self.request.set_input_tensor(2, value)
        self.request.infer()

    def result(self):
        self.run(0)
        return self.request.get_output_tensor(0).data


def stateful_model(case):
    """Each run appends its new keys and values to the state, then attends. Where a group shares a KV head, the
    repetition is written in the way that OpenVINO recognises and does not carry out."""
    def parameter(heads):
        return opset13.parameter(openvino.PartialShape([-1, heads, -1, case.head_dim]), numpy.float32)

    query, news = parameter(case.query_heads), [parameter(case.kv_heads), parameter(case.kv_heads)]
    beams = opset13.parameter(openvino.PartialShape([-1]), numpy.int32)
    empty = opset13.constant(numpy.zeros((case.batch, case.kv_heads, 0, case.head_dim), numpy.float32))
    sinks, attended = [], []
    for name, new in zip(("key", "value"), news):
        past = opset6.read_value(empty, name, openvino.Type.f32, new.get_partial_shape())
        everything = opset13.concat([opset13.gather(past, beams, numpy.int64(0)), new], 2)
        sinks.append(opset6.assign(everything, name))
        if case.group > 1:
            ones = opset13.constant(numpy.ones((1, 1, case.group, 1, 1), numpy.float32))
            repeated = opset13.multiply(opset13.unsqueeze(everything, numpy.int64(2)), ones)
            everything = opset13.reshape(repeated, numpy.array([0, case.query_heads, -1, case.head_dim]), True)
        attended.append(everything)
    attention = opset13.scaled_dot_product_attention(query, *attended)
    return openvino.Model([opset13.result(attention)], sinks, [query, *news, beams])


def as_float32(array, dtype):
    """Which the state takes and converts."""
    return numpy.ascontiguousarray(numbers_of(array, dtype), numpy.float32)


class OnState:
    """The state grows with each run, by about a hundredth in all at most. The first makes room for many more, so
    each cache has had one."""

    def __init__(self, problem, compile_model):
        model = compile_model(stateful_model(problem.case))
        self.requests = [self.filled(model.create_infer_request(), problem, cache) for cache in problem.caches]
        self.first_out = None
        for request in self.requests:
            request.infer()
            if self.first_out is None:
                self.first_out = request.get_output_tensor(0).data.copy()

    @staticmethod
    def filled(request, problem, cache):
        tokens = problem.case.query_length
        arrays = dict(zip(("key", "value"), cache))
        for state in request.query_state():
            state.state = openvino.Tensor(as_float32(arrays[state.name][:, :, :-tokens], problem.case.dtype))
        newest = [as_float32(array[:, :, -tokens:], problem.case.dtype) for array in cache]
        beams = numpy.arange(problem.case.batch, dtype=numpy.int32)
        for i, array in enumerate([problem.query, *newest, beams]):
            request.set_input_tensor(i, openvino.Tensor(array))
        return request

    def run(self, cache):
        self.requests[cache].infer()

    def result(self):
        return self.first_out
