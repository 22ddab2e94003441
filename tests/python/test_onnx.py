# SPDX-License-Identifier: MIT
"""onnx's own tests of the operator Attention, by rapt, for all opsets that have it."""
import numpy
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.backend.test.case.node.attention")  # it registers its cases

import rapt.onnx  # noqa: E402
from onnx.backend.test.case.node import _NodeTestCases  # noqa: E402
from onnx.backend.test.runner import Runner  # noqa: E402

CASES = {case.name: case for case in _NodeTestCases
         if [node.op_type for node in case.model.graph.node] == ["Attention"]}


def arrays_of(values):
    return [onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in values]


@pytest.mark.parametrize("name", CASES)
def test_case(name, monkeypatch):
    case, calls = CASES[name], []
    monkeypatch.setattr(rapt.onnx, "attention", lambda *a, **k: calls.append(1) or rapt.attention(*a, **k))
    for inputs, outputs in case.data_sets:
        results = rapt.onnx.run_model(case.model, arrays_of(inputs))
        assert calls
        Runner.assert_similar_outputs(arrays_of(outputs), results, case.rtol, case.atol)


def test_opsets():
    """The cases are of opsets 23, 24 and 25; a later one would have to be reviewed."""
    opsets = {case.model.opset_import[0].version for case in CASES.values()}
    assert {23, 24} <= opsets <= {23, 24, 25}
    assert len(CASES) >= 60


def test_nothing_in_three_dimensions():
    """An empty batch, and no queries: heads are side by side, and their size is still known."""
    for batch, queries in ((0, 5), (2, 0)):
        query, key = (numpy.ones((batch, tokens, dim), numpy.float32) for tokens, dim in ((queries, 64), (9, 32)))
        out, present, _, weights = rapt.onnx.compute(query, key, key, q_num_heads=4, kv_num_heads=2)
        assert out.shape == query.shape and present.shape == (batch, 2, 9, 16)
        assert weights.shape == (batch, 4, queries, 9)


@pytest.mark.parametrize("mask", [None, "bool", "float"])
def test_products_of_padding(random, mask):
    """Modes 0 and 1 precede any mask, also nonpad_kv_seqlen's; the result is that of the other modes."""
    query, key, value, lengths = random(2, 4, 3, 16), random(2, 2, 9, 16), random(2, 2, 9, 8), numpy.array([5, 9])
    mask = {"bool": random(3, 9) > -0.5, "float": random(4, 3, 9)}.get(mask)
    for options in ({}, dict(is_causal=1), dict(softcap=1.5)):
        raw, capped, _, last = (rapt.onnx.compute(query, key, value, mask, nonpad_kv_seqlen=lengths, **options,
                                                  qk_matmul_output_mode=mode) for mode in range(4))
        products = query @ numpy.repeat(key, 2, 1).swapaxes(2, 3) / 4
        assert numpy.allclose(raw[3], products, atol=1e-5)
        expected = 1.5 * numpy.tanh(products / 1.5) if "softcap" in options else products
        assert numpy.allclose(capped[3], expected, atol=1e-5)
        assert (raw[0] == last[0]).all() and (capped[0] == last[0]).all()


def test_other_devices_are_refused():
    assert rapt.onnx.supports_device("CPU") and not rapt.onnx.supports_device("CUDA")
    with pytest.raises(ValueError, match="device: 'CUDA' is not CPU"):
        rapt.onnx.prepare(None, "CUDA")


def test_modes_and_inputs_that_are_none(random):
    query = random(1, 2, 3, 16)
    for mode in (-1, 4):
        with pytest.raises(ValueError, match=f"qk_matmul_output_mode: {mode} is outside 0 ... 3"):
            rapt.onnx.compute(query, query, query, qk_matmul_output_mode=mode)
    case = next(iter(CASES.values()))
    prepared = rapt.onnx.prepare(case.model)
    with pytest.raises(ValueError, match="inputs; the model has"):
        prepared.run([query] * (len(case.model.graph.input) + 1))
